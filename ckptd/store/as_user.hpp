// SPDX-License-Identifier: BSD-3-Clause
//
// Storage is touched with the rights of the job's user, never with root's: one thread takes the user's file
// system identity and lays down every capability for the life of this object (CAP_SYS_RESOURCE would pass his
// quota). The kernel keeps these per thread; glibc's setgroups would change the whole process, so the raw
// system calls are used.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"

namespace banyan::ckpt {

struct storage_user {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;  ///< supplementary
    bool operator==(const storage_user&) const = default;
};

/// Of this process, as it is: for programs that read as who runs them.
storage_user myself();

/// Looks up the user's groups (getgrouplist; may ask a directory service: from a worker thread).
storage_user find_user(uid_t uid, gid_t gid);

class as_user {
  public:
    /// Who does not run as root can only be his own user, and nothing changes; nor does it for myself().
    static result<as_user> take(const storage_user& user);
    ~as_user();
    as_user(as_user&& o) noexcept
        : active_(o.active_), before_(std::move(o.before_)), effective_(o.effective_) {
        o.active_ = false;
    }
    as_user& operator=(as_user&&) = delete;

  private:
    as_user() = default;
    bool active_ = false;
    std::vector<gid_t> before_;
    std::array<std::uint32_t, 2> effective_{};  ///< capabilities before
};

}  // namespace banyan::ckpt
