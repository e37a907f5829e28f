// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/local_limits.hpp"

#include <algorithm>

#include <fcntl.h>

namespace banyan::ckpt {
namespace {

// 500 requests a second, and 100 at once; 1,000 notes, and as many at once.
constexpr std::chrono::microseconds each_request{2000}, each_note{1000}, ahead_of_requests{200'000},
    ahead_of_notes{1'000'000};
constexpr std::size_t bytes_of_a_request = 4096;  // of an answer, which takes as long as a short request does
constexpr std::int64_t most_under_way = 1 << 20;

}  // namespace

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

// What he has asked for is his debt also where he comes back with another connection.
void local_limits::leave(uid_t uid, clock::time_point now) {
    const auto it = of_.find(uid);
    if (it == of_.end()) return;
    --count_;
    --it->second.connections;
    std::erase_if(of_, [&](const auto& one) {
        const auto& next = one.second.next;
        return one.second.connections == 0 && std::max(next[0], next[1]) <= now;
    });
}

clock::duration local_limits::turn(uid_t uid, demand what, clock::time_point now) {
    const bool note = what == demand::note;
    const auto it = of_.find(uid);
    if (uid == 0 || it == of_.end()) return {};
    auto& u = it->second;
    auto& next = u.next[note ? 1 : 0];
    next = std::max(next, now) + (note ? each_note : each_request * (what == demand::status ? u.price : 1));
    return std::max(clock::duration{}, next - now - (note ? ahead_of_notes : ahead_of_requests));
}

// The price falls slowly: a short answer now and then does not make long ones cheap.
void local_limits::answered(uid_t uid, std::size_t bytes) {
    const auto it = of_.find(uid);
    if (it == of_.end()) return;
    auto& u = it->second;
    const auto cost = static_cast<std::uint32_t>(1 + bytes / bytes_of_a_request);
    if (cost > u.price) u.next[0] += each_request * (cost - u.price);
    u.price = std::max(cost, u.price - (u.price + 7) / 8);
}

void local_limits::under_way(uid_t uid, std::int64_t bytes) {
    if (const auto it = of_.find(uid); it != of_.end()) it->second.under_way += bytes;
}

bool local_limits::reads_too_little(uid_t uid) const {
    const auto it = of_.find(uid);
    return it != of_.end() && it->second.under_way > most_under_way;
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
