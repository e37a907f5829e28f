// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the process at the other end of a local socket still lives, by a pidfd: it needs no capability, and
// a process id used anew does not deceive it.
#pragma once

#include <sys/types.h>

#include "common/fd.hpp"

namespace banyan::ckpt {

class process {
  public:
    /// Of the process that connected `socket`; `pid` is what SO_PEERCRED says.
    process(int socket, pid_t pid);
    pid_t pid() const { return pid_; }
    bool alive() const;

  private:
    pid_t pid_;
    unique_fd fd_;
};

}  // namespace banyan::ckpt
