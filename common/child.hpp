// SPDX-License-Identifier: BSD-3-Clause
//
// A program as a child process: started, told signals, waited for. Everything of banyan that runs another
// program does it through this; common/command.hpp keeps what one prints.
//
// By hand, on posix_spawn and a pidfd. Boost.Process v2, as 1.81 has it, would take as many lines: its
// launcher forks (posix_spawn does not copy the page tables of a daemon that holds gigabytes), it knows
// neither signal mask nor process group, both of which banyan-run needs, it wants an io_context even to wait,
// and reading with a limit and a time-out stays with the caller. Here nothing handles SIGCHLD, starts a
// thread or waits for a child that is not ours, so it may run in a process of somebody else, slurmctld too.
// The child inherits no descriptor but its standard three, however another library has opened its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include "common/clock.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan {

struct child_setup {
    /// Descriptors that it gets as standard input, output and error; -1: it shares ours.
    int in = -1, out = -1, err = -1;
    /// Signals that it begins with as blocked; without a value none is.
    std::optional<sigset_t> blocked;
    /// A process group of its own; else it is in ours, and gets what a terminal sends to it.
    bool own_group = false;
};

/// How a process ended.
struct child_end {
    int code = 0;    ///< exit code, or 128 + signal as a shell says it
    int signal = 0;  ///< that ended it; 0 = none, it exited by itself
};

/// One child process. Movable; one that still runs when its owner goes is killed. Not for several threads.
class child {
  public:
    /// Runs `words[0]`, found in PATH, with the other words as arguments, and without a shell. Fails with
    /// errc::not_found where there is no such program. Needs Linux 5.3 and glibc 2.34.
    static result<child> start(const std::vector<std::string>& words, const child_setup& setup = {});
    child(child&& other) noexcept;
    child& operator=(child&&) = delete;
    ~child();

    /// Valid until wait() has returned.
    pid_t pid() const { return pid_; }
    /// For poll(): readable once it has ended.
    int end_fd() const { return end_.get(); }
    /// Waits until it has ended, at most until `until`; false when it runs on. Does not reap it.
    bool ends_by(clock::time_point until) const;
    void send(int signal) const;
    /// Waits for the end without limit and reaps. Once only.
    child_end wait();

  private:
    child(pid_t pid, unique_fd end) : pid_(pid), end_(std::move(end)) {}

    pid_t pid_ = -1;  ///< -1: reaped or moved away
    unique_fd end_;
};

/// Runs `work` in a fork of this process and waits for it: its return value is the exit code. Where other
/// threads run, `work` must keep to what signal handlers may do. Fails only when there is no fork to be had.
result<child_end> run_forked(const std::function<int()>& work);

/// What `work` returns in a fork of this process, which is killed at `until`, or when the process that made
/// it ends: for calls that may hang. Where other threads run it may hang by that alone. unavailable: it did
/// not end in time, or died.
result<std::string> ask_forked(const std::function<std::string()>& work, clock::time_point until);

}  // namespace banyan
