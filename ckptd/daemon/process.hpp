// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the process at the other end of a local socket still lives, by a pidfd: it needs no capability, and
// a process id used anew does not deceive it.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "common/fd.hpp"

namespace banyan::ckpt {

class process {
  public:
    /// Of the process that connected `socket`; `pid` is what SO_PEERCRED says, `started` what started_of(pid)
    /// was then: a connection may outlive its process in one that was forked.
    process(int socket, pid_t pid, std::uint64_t started);
    /// One that a daemon before this one knew, by started(); another process of that number is not alive.
    process(pid_t pid, std::uint64_t started);
    pid_t pid() const { return pid_; }
    /// When it was started, in ticks since boot (proc(5), stat); 0 where that cannot be read.
    std::uint64_t started() const { return started_; }
    bool alive() const;
    /// This process had no descriptor left to see by whether it is the one that is meant.
    bool is_unseen() const { return unseen_; }
    /// Readable once it has ended; -1 where there is none.
    int fd() const { return fd_.get(); }
    /// Whoever was told its end says so: it is not alive, and needs no descriptor.
    void has_ended() const;
    /// Its state, a letter as in proc(5); '?' where that cannot be read.
    char state() const;
    /// started() of the process that has this number now; 0 where there is none.
    static std::uint64_t started_of(pid_t pid);
    /// In place of it: there was no descriptor left to read it.
    static constexpr std::uint64_t unseen = UINT64_MAX;

  private:
    pid_t pid_;
    mutable unique_fd fd_;
    std::uint64_t started_ = 0;
    bool unseen_ = false;
    mutable bool gone_ = false;  ///< or its number is another's
};

}  // namespace banyan::ckpt
