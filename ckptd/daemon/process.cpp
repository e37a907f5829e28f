// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace banyan::ckpt {
namespace {

#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;  // Linux 6.5; the headers may be older than the kernel
#endif

bool has_no_descriptor(int error) { return error == EMFILE || error == ENFILE; }

/// What proc(5), stat says behind the process's name, which may hold blanks and parentheses: from the third
/// field on. Empty where it cannot be read, with errno.
std::istringstream stat_of(pid_t pid) {
    const unique_fd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return {};
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(fd.get(), text.data(), text.size()))));
    return std::istringstream(text.substr(std::min(text.rfind(')') + 1, text.size())));
}

}  // namespace

std::uint64_t process::started_of(pid_t pid) {
    errno = 0;
    auto in = stat_of(pid);
    if (has_no_descriptor(errno)) return unseen;
    std::string word;
    for (int field = 3; field < 22 && in >> word; ++field) {
    }
    std::uint64_t ticks = 0;
    in >> ticks;
    return ticks;
}

char process::state() const {
    char out = '?';
    stat_of(pid_) >> out;
    return alive() ? out : '?';
}

process::process(int socket, pid_t pid, std::uint64_t started) : pid_(pid) {
    int fd = -1;
    socklen_t bytes = sizeof fd;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &bytes) != 0)
        fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    unseen_ = fd < 0 && has_no_descriptor(errno);
    fd_.reset(fd);
    started_ = started_of(pid);
    unseen_ = unseen_ || started_ == unseen || started == unseen;
    gone_ = !unseen_ && started_ != started;
}

process::process(pid_t pid, std::uint64_t started) : pid_(pid), started_(started) {
    fd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const auto now = started_of(pid);
    unseen_ = now == unseen;
    gone_ = started == 0 || (!unseen_ && now != started);
}

void process::has_ended() const {
    gone_ = true;
    fd_.reset();
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
