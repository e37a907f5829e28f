// SPDX-License-Identifier: BSD-3-Clause
//
// posix_spawn, a pidfd, a signalfd and poll: nothing here needs more.
#include "supervisor/child.hpp"

#include <array>
#include <cerrno>

#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace banyan::supervisor {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::array forwarded{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM};
constexpr std::chrono::seconds interrupt_window{10};

sigset_t set_of_forwarded() {
    sigset_t out;
    sigemptyset(&out);
    for (const int s : forwarded) sigaddset(&out, s);
    return out;
}

bool on_terminal() { return ::isatty(STDIN_FILENO) && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

/// The child gets the signal mask that we were started with.
result<pid_t> spawn(const std::vector<std::string>& words, const sigset_t& mask) {
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK |
                                                             (on_terminal() ? 0 : POSIX_SPAWN_SETPGROUP)));
    pid_t pid = 0;
    const int err = ::posix_spawnp(&pid, argv[0], nullptr, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    if (err != 0) return fail_errno("cannot run " + words.front(), err, "is it installed and in PATH?");
    return pid;
}

step_end end_of(pid_t pid, const signal_watch& signals) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) return {WEXITSTATUS(status), signals.cancelled(), {}};
    const int by = WTERMSIG(status);
    return {
        128 + by, signals.cancelled() || by == SIGTERM || by == SIGINT || by == SIGHUP || by == SIGQUIT, {}};
}

int milliseconds_to(clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
    return left > 0 ? static_cast<int>(std::min<long>(left, 3'600'000)) : 0;
}

}  // namespace

signal_watch::signal_watch() {
    const auto set = set_of_forwarded();
    sigprocmask(SIG_BLOCK, &set, &before_);
    fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

signal_watch::~signal_watch() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void signal_watch::take(pid_t child) {
    signalfd_siginfo info{};
    while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
        const int number = static_cast<int>(info.ssi_signo);
        if (number == SIGTERM || number == SIGHUP || number == SIGQUIT) ended_ = true;
        if (number == SIGINT) interrupted_ = clock::now();
        // What the terminal sends (SI_KERNEL) went to the whole process group, the child included.
        const bool from_terminal = info.ssi_code == SI_KERNEL && on_terminal();
        if (child > 0 && !from_terminal) ::kill(child, number);
    }
}

bool signal_watch::cancelled() const {
    return ended_ || (interrupted_ != clock::time_point{} && clock::now() - interrupted_ < interrupt_window);
}

bool signal_watch::wait(clock::time_point until) {
    for (;;) {
        take(0);
        if (cancelled()) return true;
        const int left = milliseconds_to(until);
        if (left == 0) return false;
        pollfd wait{fd_.get(), POLLIN, 0};
        ::poll(&wait, 1, left);
    }
}

result<step_end> run_child(const std::vector<std::string>& words, signal_watch& signals,
                           const std::function<void(pid_t)>& settled) {
    BANYAN_TRY(const auto pid, spawn(words, signals.before()));
    const unique_fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!ended) {
        const int err = errno;
        ::kill(pid, SIGTERM);
        end_of(pid, signals);
        return fail_errno("cannot watch srun", err, "banyan-run needs Linux 5.3 or newer");
    }
    const auto begun = clock::now();
    const auto settles = begun + std::chrono::seconds(1);
    bool called = false;
    for (;;) {
        std::array<pollfd, 2> waits{pollfd{ended.get(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
        ::poll(waits.data(), waits.size(), called ? -1 : milliseconds_to(settles));
        if (waits[1].revents) signals.take(pid);
        if (waits[0].revents) break;
        if (!called && clock::now() >= settles) {
            called = true;
            settled(pid);
        }
    }
    signals.take(0);  // a signal that came together with the end
    auto end = end_of(pid, signals);
    end.ran = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begun);
    return end;
}

}  // namespace banyan::supervisor
