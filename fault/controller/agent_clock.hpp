// SPDX-License-Identifier: BSD-3-Clause
//
// What an agent's clock shows, against the controller's: each frame that says when it was sent tells the
// difference and the time on its way, and the least of the last few is nearest to the difference alone. Few,
// since a clock may be set; where it was set back, what it showed before counts no more. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

namespace banyan::fault {

class agent_clock {
  public:
    void heard(std::int64_t sent_ms, std::int64_t now_ms) {
        if (sent_ms < sent_ms_) late_.clear();
        sent_ms_ = sent_ms;
        if (late_.size() >= kept) late_.pop_front();
        late_.push_back(now_ms - sent_ms);
    }
    /// The controller's time for the agent's; not too early. None: an agent that does not say it.
    std::optional<std::int64_t> ours(std::int64_t its_ms) const {
        if (late_.empty()) return std::nullopt;
        return its_ms + *std::ranges::min_element(late_);
    }

  private:
    static constexpr std::size_t kept = 8;
    std::int64_t sent_ms_ = 0;
    std::deque<std::int64_t> late_;
};

}  // namespace banyan::fault
