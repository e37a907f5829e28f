// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a checkpoint daemon and holds its memory: when the daemon is killed, crashes or is replaced, the next
// one is given all descriptors that the one before it held. Small on purpose: one thread, no state but the
// descriptors, nothing of the daemon's formats; what is not here cannot fail. docs/decisions/012 says why.
//
//     SIGTERM, SIGINT           passed on to the daemon, which is not started again after that
//     SIGHUP                    passed on to the daemon
//     SIGUSR1                   the daemon is replaced by what its path names now
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "ckptd/keeper/messages.hpp"
#include "common/clock.hpp"

namespace banyan::ckpt::keeper {

class keeper {
  public:
    /// `command`: the daemon's program and its arguments.
    explicit keeper(std::vector<std::string> command) : command_(std::move(command)) {}
    /// Returns the exit status when the daemon has ended of its own will, or cannot be kept alive.
    int run();

  private:
    struct held {
        contents what;
        unique_fd fd;
    };

    bool start_daemon();
    void hand_over();
    bool hand(const record& r, int fd);
    /// What it said. False: it is gone.
    bool listen();
    void on_signal();
    /// Until the daemon has ended; how, as waitpid(2) tells.
    int watch();
    bool holds_memory() const;
    /// After its end: nothing to start again, or the status to end with.
    std::optional<int> judge(int status);
    /// The same for one that has not got so far that what it was given could be why.
    std::optional<int> judge_start(int status);
    /// The same after a pause, which a signal may cut short.
    std::optional<int> after(std::chrono::milliseconds pause);

    std::vector<std::string> command_;
    std::map<std::uint64_t, held> held_;
    unique_fd socket_, signals_;
    pid_t daemon_ = -1;                        ///< -1: there is none
    bool took_ = false, ready_ = false;        ///< what it has said
    bool replacing_ = false, ending_ = false;  ///< what we were told
    std::string ended_;                        ///< how the last one did
    clock::time_point started_{};
    int early_ends_ = 0;     ///< in a row, soon after the start
    int failed_starts_ = 0;  ///< in a row
    clock::time_point failing_since_{};
};

}  // namespace banyan::ckpt::keeper
