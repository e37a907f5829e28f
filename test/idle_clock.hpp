// SPDX-License-Identifier: BSD-3-Clause
//
// Held time that goes on by itself while nobody has anything to do: all threads of this process and of those
// below it sleep. Whoever computes, waits for a processor or for a disk holds the time, so that a limit
// passes on a busy machine when it does on an idle one; and what only waits is over in a fraction of the
// time.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <sys/types.h>

#include "test/held_clock.hpp"

namespace banyan::testing {

/// One at a time in a process, which holds BANYAN_CLOCK meanwhile. Thread-safe.
class idle_clock {
  public:
    explicit idle_clock(const std::string& path);
    ~idle_clock();
    idle_clock(const idle_clock&) = delete;

    /// A process that works without end does not hold the time.
    void ignore(pid_t pid);
    /// At once, whoever works: for a test that knows who waits.
    void advance(clock::duration by) { held_.advance(by); }

  private:
    void run();
    bool all_sleep();

    held_clock held_;
    std::mutex lock_;
    std::set<pid_t> ignored_;
    std::set<pid_t> known_;  ///< below this one, also when their parents have ended
    std::atomic<bool> over_{false};
    std::thread runs_;
};

/// Waits until `done` holds. False after a minute of the kernel's time: then something is broken.
bool eventually(const std::function<bool()>& done);
/// Whether `done` holds before so much time has passed, of the clock that the programs go by.
bool within(clock::duration time, const std::function<bool()>& done);

}  // namespace banyan::testing
