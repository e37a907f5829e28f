// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/process.hpp"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace banyan::ckpt {
namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;  // Linux 6.5; the headers may be older than the kernel
#endif

}  // namespace

process::process(int socket, pid_t pid) : pid_(pid) {
    int fd = -1;
    socklen_t bytes = sizeof fd;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) != 0)
        fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    fd_.reset(fd);
}

bool process::alive() const {
    if (fd_) {
        pollfd p{fd_.get(), POLLIN, 0};
        return ::poll(&p, 1, 0) == 0;  // readable once it has ended
    }
    // No descriptor left for it. EPERM: it lives, and we may not signal it.
    return ::kill(pid_, 0) == 0 || errno == EPERM;
}

}  // namespace banyan::ckpt
