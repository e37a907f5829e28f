// SPDX-License-Identifier: BSD-3-Clause
//
// Events that the controller has not acknowledged. Bounded twice: lines in a storm that a judgement cannot
// tell from those before are counted rather than queued, and when the queue is full what matters least goes
// first. Pure; no disk.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fault/event.hpp"

namespace banyan::fault {

class event_queue {
  public:
    explicit event_queue(std::size_t capacity = 4096) : capacity_(capacity) {}

    /// False when the event was only counted (it says nothing new).
    bool push(event e);
    /// Counts that were held back for a while become events.
    void flush_repeats(std::int64_t now_ms);
    /// The oldest, at most `most`; they stay until confirmed.
    std::vector<event> front(std::size_t most) const;
    void confirm(std::size_t count);

    bool empty() const { return queue_.empty(); }
    std::size_t size() const { return queue_.size(); }
    std::uint64_t dropped() const { return dropped_; }
    const event& oldest() const { return queue_.front(); }

  private:
    struct burst {
        std::int64_t since_ms = 0;
        std::uint32_t passed = 0;
        std::uint64_t held = 0;
        event last;  // the newest held back
    };
    static constexpr std::uint32_t burst_size = 8;
    static constexpr std::int64_t burst_ms = 10'000;
    static constexpr std::size_t max_bursts = 1024;

    void put(event e);
    void tell_states(const std::string& of);  // those that are held back

    std::size_t capacity_;
    mutable std::size_t handed_out_ = 0;  // front events that are on their way: never dropped
    std::deque<event> queue_;
    std::map<std::string, burst> bursts_;
    std::uint64_t dropped_ = 0;
};

}  // namespace banyan::fault
