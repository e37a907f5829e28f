// SPDX-License-Identifier: BSD-3-Clause
//
// Loaded into a daemon by LD_PRELOAD: storage that is slow, or stands still. What is made or opened for
// writing and has SLOW_MATCH in its name, or gets another name and has SLOW_RENAME in its old one, waits
// between SLOW_LO and SLOW_HI milliseconds, by chance from SLOW_SEED, or, with SLOW_GATE, as long as that
// file exists. So does pread of what has SLOW_READ in its path; with READ_ERROR, a number, it fails instead,
// as long as SLOW_GATE exists. To open, or to make a folder of, what has OPEN_MATCH in its name fails with
// OPEN_ERROR as long as SLOW_GATE exists; the first time only with OPEN_ONCE.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.hpp"

namespace {

long number(const char* name) {
    const char* text = std::getenv(name);
    return text ? std::strtol(text, nullptr, 10) : 0;
}

void hold(const char* path, const char* what = "SLOW_MATCH") {
    const char* match = std::getenv(what);
    if (!match || !path || !std::strstr(path, match)) return;
    if (const char* gate = std::getenv("SLOW_GATE")) {
        while (::access(gate, F_OK) == 0) ::usleep(5000);
        return;
    }
    static std::mutex lock;
    static std::mt19937 random(static_cast<unsigned>(number("SLOW_SEED")));
    long ms = 0;
    {
        const std::scoped_lock held(lock);
        ms = std::uniform_int_distribution<long>(number("SLOW_LO"), number("SLOW_HI"))(random);
    }
    banyan::clock::sleep_for(std::chrono::milliseconds(ms));
}

bool fails(int fd) {
    const char* match = std::getenv("SLOW_READ");
    if (!match) return false;
    std::array<char, 4096> path{};
    const auto link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), path.data(), path.size() - 1) < 0) return false;
    const auto error = static_cast<int>(number("READ_ERROR"));
    if (error == 0) hold(path.data(), "SLOW_READ");
    const char* gate = std::getenv("SLOW_GATE");
    if (error == 0 || !gate || !std::strstr(path.data(), match) || ::access(gate, F_OK) != 0) return false;
    errno = error;
    return true;
}

bool fails_to_open(const char* path) {
    static std::atomic<int> failed{0};
    const char* match = std::getenv("OPEN_MATCH");
    const char* gate = std::getenv("SLOW_GATE");
    if (!match || !gate || !path || !std::strstr(path, match) || ::access(gate, F_OK) != 0) return false;
    if (failed++ != 0 && std::getenv("OPEN_ONCE")) return false;
    errno = static_cast<int>(number("OPEN_ERROR"));
    return true;
}

[[maybe_unused]] const bool follows = banyan::clock::follow_environment().has_value();

template <class F>
F real(const char* name) {
    return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// The build hides what a library does not mean to give.
#pragma GCC visibility push(default)
extern "C" {

int openat(int folder, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    static const auto next = real<int (*)(int, const char*, int, ...)>("openat");
    if (fails_to_open(path)) return -1;
    if ((flags & O_ACCMODE) != O_RDONLY) hold(path);
    return next(folder, path, flags, mode);
}

ssize_t pread(int fd, void* into, size_t bytes, off_t at) {
    static const auto next = real<ssize_t (*)(int, void*, size_t, off_t)>("pread");
    return fails(fd) ? -1 : next(fd, into, bytes, at);
}

ssize_t pread64(int fd, void* into, size_t bytes, off64_t at) {
    static const auto next = real<ssize_t (*)(int, void*, size_t, off64_t)>("pread64");
    return fails(fd) ? -1 : next(fd, into, bytes, at);
}

int mkdirat(int folder, const char* path, mode_t mode) {
    static const auto next = real<int (*)(int, const char*, mode_t)>("mkdirat");
    if (fails_to_open(path)) return -1;
    hold(path);
    return next(folder, path, mode);
}

int renameat(int folder, const char* path, int to, const char* name) {
    static const auto next = real<int (*)(int, const char*, int, const char*)>("renameat");
    hold(path, "SLOW_RENAME");
    return next(folder, path, to, name);
}
}
#pragma GCC visibility pop
