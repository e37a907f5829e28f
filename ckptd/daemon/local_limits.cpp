// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/local_limits.hpp"

#include <algorithm>

#include <fcntl.h>

namespace banyan::ckpt {

std::uint32_t local_limits::total_for(std::uint64_t descriptors) {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(descriptors / 4, 8, 8192));
}

local_limits::verdict local_limits::enter(uid_t uid, bool has_session) {
    if (uid == 0) return verdict::come;
    const auto it = of_.find(uid);
    const auto mine = it == of_.end() ? 0 : it->second.connections;
    if (it != of_.end()) it->second.stranger = !has_session;
    if (mine >= per_user()) return verdict::refuse;
    const bool no_share = !has_session && strangers() >= of_strangers();
    auto out = verdict::come;
    if (count_ >= total_ || no_share) {
        // Who has a session goes before who has none.
        gives_way_ = heaviest(no_share || (has_session && strangers() != 0));
        const bool before = has_session && gives_way_ && of_.at(*gives_way_).stranger;
        if (!gives_way_ || (!before && of_.at(*gives_way_).connections <= mine + 1)) return verdict::refuse;
        out = verdict::make_room;
    }
    auto& entry = of_[uid];
    ++entry.connections;
    entry.stranger = !has_session;
    ++count_;
    return out;
}

void local_limits::leave(uid_t uid) {
    const auto it = of_.find(uid);
    if (it == of_.end()) return;
    --count_;
    if (--it->second.connections == 0) of_.erase(it);
}

clock::duration local_limits::turn(uid_t uid, demand what, clock::time_point now) {
    // 500 requests a second, and 100 at once; 1,000 notes, and as many at once.
    using namespace std::chrono_literals;
    const bool note = what == demand::note;
    const std::chrono::microseconds each = note ? 1ms : 2ms, ahead = note ? 1000ms : 200ms;
    const auto it = of_.find(uid);
    if (uid == 0 || it == of_.end()) return {};
    auto& next = it->second.next[static_cast<std::size_t>(what)];
    next = std::max(next, now) + each;
    return std::max(clock::duration{}, next - now - ahead);
}

std::optional<uid_t> local_limits::heaviest(bool among_strangers) const {
    std::optional<uid_t> out;
    std::uint32_t most = 0;
    for (const auto& [uid, u] : of_)
        if ((u.stranger || !among_strangers) && u.connections > most) {
            out = uid;
            most = u.connections;
        }
    return out;
}

std::uint32_t local_limits::strangers() const {
    std::uint32_t out = 0;
    for (const auto& [uid, u] : of_)
        if (u.stranger) out += u.connections;
    return out;
}

bool descriptor_reserve::refill() {
    while (held_.size() < wanted) {
        unique_fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (!fd) return false;
        held_.push_back(std::move(fd));
    }
    return true;
}

}  // namespace banyan::ckpt
