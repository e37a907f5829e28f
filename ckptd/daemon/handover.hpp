// SPDX-License-Identifier: BSD-3-Clause
//
// What a daemon that is started again makes of what its keeper holds. docs/decisions/012.
#pragma once

#include "ckptd/daemon/emergencies.hpp"
#include "ckptd/daemon/ended_jobs.hpp"
#include "ckptd/daemon/launches.hpp"

namespace banyan::ckpt {

class handover {
  public:
    struct parts {
        reporter& users;
        directories& dirs;
        protector& copies;
        launches& starts;
        ended_jobs& ended;
        emergencies& watch;
    };
    handover(daemon_core& core, const parts& p) : core_(core), to_(p) {}

    /// Before anybody is let in.
    void take_over(std::vector<keeper::handed_over> all);
    /// Processes that ended while no daemon was there, or before they came back to this one.
    void watch_former_owners(const session_ptr& s);

  private:
    void resume(const session_ptr& s);
    task<void> resume_storage(session_ptr s);
    /// What of the memory lies in transparent huge pages.
    task<void> count_transparent(std::vector<std::weak_ptr<shard_memory>> held);

    daemon_core& core_;
    const parts to_;
};

}  // namespace banyan::ckpt
