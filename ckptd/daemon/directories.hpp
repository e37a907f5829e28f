// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint directories as their jobs' own: taken by the daemon that leads, shown to be alive by a beat as
// long as the job runs, given up when it has ended. docs/decisions/011 says why.
#pragma once

#include <string>

#include "ckptd/daemon/core.hpp"

namespace banyan::ckpt {

class directories {
  public:
    explicit directories(daemon_core& core) : core_(core) {}

    /// Finds the user's groups and a directory that he may write to; what is wrong with it, or nothing.
    task<std::string> prepare(session_ptr s);
    /// The job's claim to its directory, after watching whether another job lives there. errc::conflict: one
    /// does, or a newer start of this job; then nothing of the directory may be used.
    task<result<claim>> own(session_ptr s);
    /// The claim names the nodes of this launch alone from now on. Precondition: it is held.
    task<void> forget_former(session_ptr s);
    /// After an error of a step that needs the claim: whether it says that the claim is gone.
    void lost(const session_ptr& s, const claim& c, const error& why);
    /// Directories that are ours, or being given up.
    std::uint32_t claims() const { return claims_; }

  private:
    task<void> look_at(session_ptr s, std::shared_ptr<std::optional<result<void>>> answer);
    task<void> beat(session_ptr s, claim c);
    task<void> release(session_ptr s, claim c, std::shared_ptr<bool> over);

    daemon_core& core_;
    std::uint32_t claims_ = 0;
};

}  // namespace banyan::ckpt
