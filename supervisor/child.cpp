// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-run has beside any program that runs another (common/child.hpp): signals are blocked, read from
// a signalfd and handed on, and the terminal's process group counts. Output is not captured: it is srun's
// own.
#include "supervisor/child.hpp"

#include <array>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/child.hpp"

namespace banyan::supervisor {
namespace {

constexpr std::array forwarded{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM};
constexpr std::chrono::seconds interrupt_window{10};

sigset_t set_of_forwarded() {
    sigset_t out;
    sigemptyset(&out);
    for (const int s : forwarded) sigaddset(&out, s);
    return out;
}

bool on_terminal() { return ::isatty(STDIN_FILENO) && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

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
        const int left = clock::poll_ms(until);
        if (left == 0) return false;
        pollfd wait{fd_.get(), POLLIN, 0};
        ::poll(&wait, 1, left);
    }
}

result<step_end> run_child(const std::vector<std::string>& words, signal_watch& signals, const looker& look) {
    child_setup setup;
    setup.blocked = signals.before();
    setup.own_group = !on_terminal();
    auto started = child::start(words, setup);
    if (!started) {
        if (started.error().hint.empty()) started.error().hint = "is it installed and in PATH?";
        return std::unexpected(std::move(started).error());
    }
    auto running = std::move(*started);
    const auto begun = clock::now();
    auto next = begun + first_look;
    bool looking = true;
    for (;;) {
        std::array<pollfd, 2> waits{pollfd{running.end_fd(), POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
        ::poll(waits.data(), waits.size(), looking ? clock::poll_ms(next) : -1);
        if (waits[1].revents) signals.take(running.pid());
        if (waits[0].revents) break;
        if (!looking || clock::now() < next) continue;
        const auto pause = look(running.pid());
        looking = pause.count() > 0;
        next = clock::now() + pause;
    }
    signals.take(0);  // a signal that came together with the end
    const auto end = running.wait();
    const bool told_to_end =
        end.signal == SIGTERM || end.signal == SIGINT || end.signal == SIGHUP || end.signal == SIGQUIT;
    return step_end{end.code, signals.cancelled() || told_to_end,
                    std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begun)};
}

}  // namespace banyan::supervisor
