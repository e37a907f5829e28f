// SPDX-License-Identifier: BSD-3-Clause
//
// From the error counters of HCA ports, read now and then, to what rose too fast. Pure: looks and time come
// in with each call. What a counter that began anew had counted before is not known: only what it shows now
// counts, which may be too little and is never too much.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "hardware/hca_counters.hpp"

namespace banyan::fault {

/// More than `more_than` within `within` is too much: "symbol_error:120/1h".
struct counter_limit {
    std::string counter;
    std::uint64_t more_than = 0;
    std::chrono::milliseconds within{};  ///< 1 s to 24 h
};
result<counter_limit> counter_limit_from(std::string_view text);

/// A counter that rose by more than its limit.
struct counter_excess {
    std::string device, port, bdf;  ///< "mlx5_0", "1", "0000:3b:00.0" or nothing
    counter_limit limit;
    std::uint64_t rise = 0;
    std::chrono::milliseconds over{};  ///< the time in which it did

    std::string text() const;
};

class hca_rates {
  public:
    using clock = banyan::clock;
    struct outcome {
        std::vector<counter_excess> excess;
        std::set<std::string> blind;  ///< what could not be looked at, each as a sentence
    };

    explicit hca_rates(std::vector<counter_limit> limits) : limits_(std::move(limits)) {}

    /// A counter that is seen for the first time, or again, is told from the next time on. One that rose too
    /// fast is told again when it has risen by as much anew.
    outcome after_look(std::span<const hardware::port_counters> ports, clock::time_point now);

  private:
    struct sample {
        clock::time_point at;
        std::uint64_t total = 0;
    };
    struct track {
        std::uint64_t shown = 0, total = 0;
        std::deque<sample> samples;  ///< the oldest first; the first may be older than the limit's time
    };
    using key = std::tuple<std::string, std::string, std::size_t>;  // device, port, place in limits_

    void look_at(const hardware::port_counters& port, std::size_t n, std::uint64_t value,
                 clock::time_point now, outcome& out);

    std::vector<counter_limit> limits_;
    std::map<key, track> tracks_;
    std::map<std::string, bool> known_;  ///< ports, and whether this look showed them
};

}  // namespace banyan::fault
