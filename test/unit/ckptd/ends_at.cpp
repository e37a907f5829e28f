// SPDX-License-Identifier: BSD-3-Clause
//
// Loaded into a program by LD_PRELOAD: it ends, or stops, at one call of its own that the test names. The
// folder ENDS_AT has a file for each kind of call, "NUMBER SIGNAL": before the call of that number since the
// file is there the process takes the file away and sends itself the signal. Without the file all goes on.
//
//     takeover   of a daemon that its keeper has started again: what it is handed, maps and hands back
//     shard      as much sent at once as only a rank's state has
//     storage    what changes a directory or makes it last
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr std::size_t as_much_as_a_shard = 30'000;

enum kind { takeover, shard, storage, kinds };

void count(kind k) {
    static std::array<std::atomic<long>, kinds> calls{};
    constexpr std::array<const char*, kinds> names{"takeover", "shard", "storage"};
    const char* folder = std::getenv("ENDS_AT");
    if (!folder) return;
    std::array<char, 4096> path{};
    std::snprintf(path.data(), path.size(), "%s/%s", folder, names[k]);
    const int err = errno;
    const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC));
    if (fd >= 0) {
        std::array<char, 64> text{};
        const auto n = ::read(fd, text.data(), text.size() - 1);
        ::close(fd);
        char* end = nullptr;
        const long at = n > 0 ? std::strtol(text.data(), &end, 10) : 0;
        if (at > 0 && ++calls[k] >= at && ::syscall(SYS_unlinkat, AT_FDCWD, path.data(), 0) == 0)
            ::raise(static_cast<int>(std::strtol(end, nullptr, 10)));
    }
    errno = err;
}

void count_takeover() {
    static const bool again = std::getenv("BANYAN_KEEPER_ENDED") != nullptr;
    if (again) count(takeover);
}

void count_sent(std::size_t bytes) {
    if (bytes >= as_much_as_a_shard) count(shard);
}

template <class F>
F real(const char* name) {
    return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

// What stands in the environment is taken out of it early.
[[gnu::constructor]] void look_at_environment() { count_takeover(); }

}  // namespace

// The build hides what a library does not mean to give.
#pragma GCC visibility push(default)
extern "C" {

ssize_t recvmsg(int fd, msghdr* message, int flags) {
    static const auto next = real<ssize_t (*)(int, msghdr*, int)>("recvmsg");
    count_takeover();
    return next(fd, message, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    static const auto next = real<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < message->msg_iovlen; ++i) bytes += message->msg_iov[i].iov_len;
    count_takeover();
    count_sent(bytes);
    return next(fd, message, flags);
}

ssize_t send(int fd, const void* data, std::size_t n, int flags) {
    static const auto next = real<ssize_t (*)(int, const void*, std::size_t, int)>("send");
    count_sent(n);
    return next(fd, data, n, flags);
}

void* mmap(void* at, std::size_t n, int allowed, int flags, int fd, off_t from) noexcept {
    static const auto next = real<void* (*)(void*, std::size_t, int, int, int, off_t)>("mmap");
    if (fd >= 0) count_takeover();
    return next(at, n, allowed, flags, fd, from);
}

int memfd_create(const char* name, unsigned flags) noexcept {
    static const auto next = real<int (*)(const char*, unsigned)>("memfd_create");
    count_takeover();
    return next(name, flags);
}

int openat(int folder, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    static const auto next = real<int (*)(int, const char*, int, ...)>("openat");
    if ((flags & O_CREAT) != 0) count(storage);
    return next(folder, path, flags, mode);
}

int mkdirat(int folder, const char* path, mode_t mode) {
    static const auto next = real<int (*)(int, const char*, mode_t)>("mkdirat");
    count(storage);
    return next(folder, path, mode);
}

int renameat(int from, const char* name, int to, const char* wanted) noexcept {
    static const auto next = real<int (*)(int, const char*, int, const char*)>("renameat");
    count(storage);
    return next(from, name, to, wanted);
}

int renameat2(int from, const char* name, int to, const char* wanted, unsigned flags) noexcept {
    static const auto next = real<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
    count(storage);
    return next(from, name, to, wanted, flags);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
    static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
    count(storage);
    return next(folder, name, flags);
}

int fsync(int fd) {
    static const auto next = real<int (*)(int)>("fsync");
    count(storage);
    return next(fd);
}
}
#pragma GCC visibility pop
