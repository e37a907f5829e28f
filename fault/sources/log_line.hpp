// SPDX-License-Identifier: BSD-3-Clause
//
// A line as a source gives it: what it says, when it was written, and where it stood. Stream and position
// name the line for ever, so that nobody acts on it twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/clock.hpp"

namespace banyan::fault {

struct log_line {
    std::string_view raw;
    std::string_view stream;     ///< which run of which file: inode, start of the follower, generation
    std::uint64_t position = 0;  ///< byte offset in a file, sequence number on the device
    std::int64_t line_ms = 0;    ///< wall clock when it was written, as well as that is known
};
using line_sink = std::function<void(const log_line&)>;

/// What a source met that was not a clean line.
struct source_counters {
    std::uint64_t lines = 0, dirty = 0, cut = 0, lost = 0, restarts = 0;
};

/// Of the time of day and a clock that nobody sets: it changes when somebody sets the first.
inline std::int64_t clock_gap_ms() {
    using namespace std::chrono;
    return clock::wall_ms() - duration_cast<milliseconds>(clock::now().time_since_epoch()).count();
}

}  // namespace banyan::fault
