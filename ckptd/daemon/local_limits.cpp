// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/local_limits.hpp"

#include <algorithm>

#include <fcntl.h>

namespace banyan::ckpt {

std::uint32_t local_limits::total_for(std::uint64_t descriptors) {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(descriptors / 4, 8, 8192));
}

local_limits::verdict local_limits::enter(uid_t uid) {
    if (uid == 0) return verdict::come;
    const auto it = of_.find(uid);
    const auto mine = it == of_.end() ? 0 : it->second.connections;
    if (mine >= per_user()) return verdict::refuse;
    auto out = verdict::come;
    if (count_ >= total_) {
        const auto other = heaviest();
        if (!other || of_.at(*other).connections <= mine + 1) return verdict::refuse;
        out = verdict::make_room;
    }
    ++of_[uid].connections;
    ++count_;
    return out;
}

void local_limits::leave(uid_t uid) {
    const auto it = of_.find(uid);
    if (it == of_.end()) return;
    --count_;
    if (--it->second.connections == 0) of_.erase(it);
}

clock::duration local_limits::turn(uid_t uid, clock::time_point now) {
    constexpr std::chrono::milliseconds each{2}, ahead{200};  // 500 a second, and 100 at once
    const auto it = of_.find(uid);
    if (uid == 0 || it == of_.end()) return {};
    auto& next = it->second.next;
    next = std::max(next, now) + each;
    return std::max(clock::duration{}, next - now - ahead);
}

std::optional<uid_t> local_limits::heaviest() const {
    const auto less = [](const auto& a, const auto& b) {
        return a.second.connections < b.second.connections;
    };
    const auto it = std::max_element(of_.begin(), of_.end(), less);
    if (it == of_.end()) return std::nullopt;
    return it->first;
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
