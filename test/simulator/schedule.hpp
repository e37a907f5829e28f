// SPDX-License-Identifier: BSD-3-Clause
//
// A schedule: simulated time, events in its order, and all chance from one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace banyan::ckpt::simulator {

using time_us = std::int64_t;

class schedule {
  public:
    explicit schedule(std::uint64_t seed) : random_(seed) {}

    time_us now() const { return now_; }
    std::uint64_t events() const { return events_; }
    double uniform(double low, double high) {
        return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
    }
    bool chance(double p) { return uniform(0, 1) < p; }
    std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
    std::uint64_t number() { return random_(); }
    time_us between(time_us low, time_us high) {
        return static_cast<time_us>(uniform(static_cast<double>(low), static_cast<double>(high)));
    }
    void in(time_us delay, std::function<void()> what) {
        queue_.push({now_ + delay, ++order_, std::move(what)});
    }
    void run_for(time_us duration) {
        const auto until = now_ + duration;
        while (!queue_.empty() && queue_.top().at <= until) {
            const auto next = queue_.top();
            queue_.pop();
            now_ = next.at;
            ++events_;
            next.what();
        }
        now_ = until;
    }

  private:
    struct event {
        time_us at;
        std::uint64_t order;
        std::function<void()> what;
        bool operator>(const event& o) const { return std::pair(at, order) > std::pair(o.at, o.order); }
    };

    std::mt19937_64 random_;
    time_us now_ = 0;
    std::uint64_t order_ = 0, events_ = 0;
    std::priority_queue<event, std::vector<event>, std::greater<>> queue_;
};

}  // namespace banyan::ckpt::simulator
