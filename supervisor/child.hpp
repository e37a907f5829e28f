// SPDX-License-Identifier: BSD-3-Clause
//
// One child process and the signals that are meant for it. While a watch lives, the signals are blocked and
// read from a descriptor, so none can come between two steps unseen.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include "common/clock.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"
#include "supervisor/decision.hpp"

namespace banyan::supervisor {

class signal_watch {
  public:
    signal_watch();
    ~signal_watch();
    signal_watch(const signal_watch&) = delete;
    signal_watch& operator=(const signal_watch&) = delete;

    int fd() const { return fd_.get(); }
    const sigset_t& before() const { return before_; }
    /// Takes what has come; hands each on to `child` when it is > 0 (unless the terminal sent it there too).
    void take(pid_t child);
    /// Somebody asked for the end: SIGTERM, SIGHUP or SIGQUIT at any time, or SIGINT within the last seconds
    /// (srun takes a single Ctrl-C as a question for the state of its tasks).
    bool cancelled() const;
    /// Waits, at most until `until`; true when a cancel came.
    bool wait(clock::time_point until);

  private:
    sigset_t before_{};
    unique_fd fd_;
    bool ended_ = false;
    clock::time_point interrupted_{};
};

/// Looks at the child while it runs. Returns in how long to look again; zero: not any more.
using looker = std::function<std::chrono::milliseconds(pid_t)>;

/// Runs `words` (found in PATH) and waits for its end. `look` is called first when it has run for
/// `first_look`. On a terminal the child stays in our process group, so that the terminal treats both as one;
/// else it has its own, so that a signal for our group reaches it once.
result<step_end> run_child(const std::vector<std::string>& words, signal_watch& signals, const looker& look);

constexpr std::chrono::milliseconds first_look{50};

}  // namespace banyan::supervisor
