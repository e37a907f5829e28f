// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/caller_limits.hpp"

#include <algorithm>

namespace banyan::fault {

bool caller_limits::enter(uid_t uid, bool for_another) {
    if (is_privileged(uid)) {
        if (privileged_ >= privileged) return false;
        ++privileged_;
    } else {
        const auto it = callers_.find(uid);
        if ((users_ >= all_users && !for_another) ||
            (it != callers_.end() && it->second.connections >= per_user))
            return false;
        ++users_;
    }
    ++callers_[uid].connections;
    return true;
}

void caller_limits::leave(uid_t uid) {
    const auto it = callers_.find(uid);
    if (it == callers_.end()) return;
    --(is_privileged(uid) ? privileged_ : users_);
    if (--it->second.connections == 0) callers_.erase(it);
}

bool caller_limits::begin_poll(uid_t uid) {
    auto& c = callers_[uid];
    if (!is_privileged(uid) && (c.polls >= polls_per_user || polls_ >= all_polls)) return false;
    ++c.polls;
    if (!is_privileged(uid)) ++polls_;
    return true;
}

void caller_limits::end_poll(uid_t uid) {
    const auto it = callers_.find(uid);
    if (it == callers_.end() || it->second.polls == 0) return;
    --it->second.polls;
    if (!is_privileged(uid)) --polls_;
}

caller_limits::clock::time_point caller_limits::turn(uid_t uid, clock::time_point now) {
    const auto it = callers_.find(uid);
    if (is_privileged(uid) || it == callers_.end()) return now;
    const auto mine = std::max({now, it->second.next, users_next_});
    it->second.next = mine + between_requests;
    users_next_ = std::max(now, users_next_) + users_pause_;
    return mine;
}

void caller_limits::took(uid_t uid, clock::duration busy) {
    constexpr int pauses = 9;
    if (!is_privileged(uid)) users_pause_ = std::max(pauses * busy, users_pause_ * 7 / 8);
}

}  // namespace banyan::fault
