// SPDX-License-Identifier: BSD-3-Clause
//
// How much of the controller's socket each local user may have. Root and the daemon's own user have room of
// their own, which nobody else takes. Pure: the caller brings the clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>

#include <sys/types.h>

#include "common/clock.hpp"

namespace banyan::fault {

class caller_limits {
  public:
    using clock = banyan::clock;
    static constexpr std::size_t per_user = 8;     ///< connections at once
    static constexpr std::size_t all_users = 96;   ///< of all users together, root not among them
    static constexpr std::size_t privileged = 64;  ///< of root and the daemon's own user together
    static constexpr std::size_t polls_per_user = 2, all_polls = 48;  ///< of users
    static constexpr std::chrono::milliseconds between_requests{50};  ///< of one user, root not among them

    explicit caller_limits(uid_t own) : own_(own) {}

    bool is_privileged(uid_t uid) const { return uid == 0 || uid == own_; }
    /// A connection begins; false when it must be refused, and then no leave() follows. `for_another`: one of
    /// a user's ends for it, which is still counted.
    bool enter(uid_t uid, bool for_another = false);
    /// One that is idle has to make room for his first: one person may have thousands of uids (/etc/subuid).
    bool comes_first(uid_t uid) const { return !is_privileged(uid) && !callers_.contains(uid); }
    void leave(uid_t uid);
    /// A request that waits for a change; false when the user has enough of them, and then no end_poll()
    /// follows.
    bool begin_poll(uid_t uid);
    void end_poll(uid_t uid);
    /// When the user's next request may be answered: at once, or after those before it.
    clock::time_point turn(uid_t uid, clock::time_point now);
    /// An answer kept the daemon busy for `busy`: all users together get no more than a tenth of its time.
    void took(uid_t uid, clock::duration busy);

  private:
    struct caller {
        std::size_t connections = 0, polls = 0;
        clock::time_point next{};
    };
    uid_t own_;
    std::map<uid_t, caller> callers_;                     // those with a connection: bounded by it
    std::size_t users_ = 0, privileged_ = 0, polls_ = 0;  // polls_: of users
    clock::time_point users_next_{};
    clock::duration
        users_pause_{};  // between any two requests of users; follows what the dearest of late took
};

}  // namespace banyan::fault
