// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/seen_events.hpp"

#include <algorithm>

namespace banyan::fault {

namespace {
// So long a frame may be on its way, by which a node's clock was compared: an agent gives up then.
constexpr std::int64_t clocks_differ_ms = 5'000;
}  // namespace

seen_events::sight seen_events::look(const event& e) {
    if (const auto it = keys_.find(e.key()); it != keys_.end())
        return it->second ? sight::kept : sight::waiting;
    auto& waiting = waiting_[e.node];
    if (waiting >= max_waiting) return sight::refused;
    ++waiting;
    keys_.emplace(e.key(), false);
    return sight::fresh;
}

bool seen_events::waits(const std::string& key) const {
    const auto it = keys_.find(key);
    return it != keys_.end() && !it->second;
}

bool seen_events::is_kept(const std::string& key) const {
    const auto it = keys_.find(key);
    return it != keys_.end() && it->second;
}

void seen_events::wait_less(const std::string& node) {
    const auto it = waiting_.find(node);
    if (it != waiting_.end() && --it->second == 0) waiting_.erase(it);
}

void seen_events::keep(const std::string& node, const std::string& key, std::int64_t now_ms) {
    const auto it = keys_.find(key);
    if (it == keys_.end() || std::exchange(it->second, true)) return;
    wait_less(node);
    kept_.emplace_back(key, now_ms);
    if (kept_.size() <= max_kept) return;
    since_ms_ = std::max(since_ms_, kept_.front().second);
    keys_.erase(kept_.front().first);
    kept_.pop_front();
}

void seen_events::forget(const event& e) {
    if (keys_.erase(e.key()) != 0) wait_less(e.node);
}

bool seen_events::covers(const event& e, std::int64_t now_ms) const {
    return e.written_ms && *e.written_ms > since_ms_ + clocks_differ_ms &&
           *e.written_ms <= now_ms + clocks_differ_ms;
}

}  // namespace banyan::fault
