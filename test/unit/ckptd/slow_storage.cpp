// SPDX-License-Identifier: BSD-3-Clause
//
// Loaded into a daemon by LD_PRELOAD: storage that is slow, or stands still. What is made or opened for
// writing and has SLOW_MATCH in its name, or gets another name and has SLOW_RENAME in its old one, waits
// between SLOW_LO and SLOW_HI milliseconds, by chance from SLOW_SEED, or, with SLOW_GATE, as long as that
// file exists.
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
    ::usleep(static_cast<useconds_t>(ms * 1000));
}

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
    if ((flags & O_ACCMODE) != O_RDONLY) hold(path);
    return next(folder, path, flags, mode);
}

int mkdirat(int folder, const char* path, mode_t mode) {
    static const auto next = real<int (*)(int, const char*, mode_t)>("mkdirat");
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
