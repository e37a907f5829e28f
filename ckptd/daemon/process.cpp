// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sstream>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "common/file.hpp"

namespace banyan::ckpt {
namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;  // Linux 6.5; the headers may be older than the kernel
#endif

}  // namespace

std::uint64_t process::started_of(pid_t pid) {
    const auto text = read_file(fmt::format("/proc/{}/stat", pid), 4096);
    if (!text) return 0;
    // The name may hold blanks and parentheses: the fields are counted behind the last one.
    std::istringstream in(text->substr(std::min(text->rfind(')') + 1, text->size())));
    std::string word;
    for (int field = 3; field < 22 && in >> word; ++field) {
    }
    std::uint64_t ticks = 0;
    in >> ticks;
    return ticks;
}

process::process(int socket, pid_t pid, std::uint64_t started) : pid_(pid) {
    int fd = -1;
    socklen_t bytes = sizeof fd;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) != 0)
        fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    fd_.reset(fd);
    started_ = started_of(pid);
    gone_ = started_ != started;
}

process::process(pid_t pid, std::uint64_t started) : pid_(pid), started_(started) {
    fd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    gone_ = started == 0 || started_of(pid) != started;
}

bool process::alive() const {
    if (gone_) return false;
    if (fd_) {
        pollfd p{fd_.get(), POLLIN, 0};
        return ::poll(&p, 1, 0) == 0;  // readable once it has ended
    }
    // No descriptor left for it. EPERM: it lives, and we may not signal it.
    return ::kill(pid_, 0) == 0 || errno == EPERM;
}

}  // namespace banyan::ckpt
