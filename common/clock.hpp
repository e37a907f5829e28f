// SPDX-License-Identifier: BSD-3-Clause
//
// The time that banyan's programs go by. Deadlines and pauses are of this clock, so that a test can hold time
// and move it: a type of its own, so that the kernel's time and a held one are never compared. timer.hpp has
// the timers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "common/result.hpp"

namespace banyan {

/// The kernel's steady time (CLOCK_MONOTONIC), or what a test holds. Meets std::chrono's and Asio's
/// requirements of a clock. Thread-safe.
struct clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept;
    /// The time of day in ms since 1970. It moves with now() while that is held.
    static std::int64_t wall_ms() noexcept;
    /// How long to sleep, of the kernel's time, before a look whether `left` has passed: `left` itself, and a
    /// millisecond at most where somebody holds the time.
    static duration before_next_look(duration left) noexcept;
    /// What poll() takes as its time-out, in ms: as before_next_look() of what is left, rounded up, an hour
    /// at most. 0: `until` has passed; else whoever polled in vain asks again.
    static int poll_ms(time_point until) noexcept;
    /// Blocks this thread until `until`. For programs and threads that serve nobody meanwhile.
    static void sleep_until(time_point until);
    static void sleep_for(duration time) { sleep_until(now() + time); }

    /// What a test holds: nanoseconds, as now() tells them. It outlives its use.
    using held = std::atomic<std::int64_t>;
    /// From now on now() is what `time` says; nullptr: the kernel's time again.
    static void follow(const held* time) noexcept;
    /// The same with the first eight bytes of the file that BANYAN_CLOCK names, which several processes
    /// share. Nothing without that variable.
    static result<void> follow_environment();
};

}  // namespace banyan
