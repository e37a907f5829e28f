// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/keeper/keeper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace banyan::ckpt::keeper {
namespace {

using namespace std::chrono_literals;

constexpr auto early = 3s;        // an end so soon after the start may come from what was handed over
constexpr int most_with_all = 3;  // early ends in a row before the next daemon begins with nothing
constexpr int most = 6;
constexpr auto pause_after_end = 200ms;  // times the number of ends in a row
constexpr auto longest_pause = 5s;
constexpr auto longest_without = 10min;  // of a daemon that starts
constexpr auto longest_handing = 10s;    // of one descriptor that the kernel refuses for now
constexpr std::array passed_on{SIGTERM, SIGINT, SIGHUP};
constexpr int could_not_fork = 1 << 8;  // as of exit status 1

sigset_t handled() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) ::sigaddset(&set, s);
    return set;
}

std::string words(int status) {
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    return "exit status " + std::to_string(WEXITSTATUS(status));
}

void let_go_of_terminal() {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) return;
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
    if (null > STDERR_FILENO) ::close(null);
}

}  // namespace

bool keeper::start_daemon() {
    ready_ = took_ = false;
    started_ = clock::now();
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
    unique_fd ours(ends[0]), theirs(ends[1]);
    const auto keeper_pid = ::getpid();
    const auto end_text = std::to_string(theirs.get());
    std::vector<char*> arguments;
    for (auto& word : command_) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    daemon_ = ::fork();
    if (daemon_ < 0) return false;
    if (daemon_ == 0) {
        // Without its keeper it ends, too: memory that nobody keeps must not look as if it were kept.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != keeper_pid) ::_exit(1);
        ::fcntl(theirs.get(), F_SETFD, 0);
        const auto none = sigset_t{};
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::setenv(socket_variable, end_text.c_str(), 1);
        if (!ended_.empty()) ::setenv(ended_variable, ended_.c_str(), 1);
        ::execv(arguments[0], arguments.data());
        ::dprintf(STDERR_FILENO, "banyan-ckpt-keeper: cannot run %s: %s\n", arguments[0],
                  std::strerror(errno));
        ::_exit(127);
    }
    socket_ = std::move(ours);
    theirs.reset();  // the daemon has the only other end, so that it ends with it
    hand_over();
    return true;
}

// More than a socket's buffer holds would wait for the daemon to read, and it may die first: then the socket
// ends, and so does this. One that cannot be given all is given nothing, as it would wait for the rest.
void keeper::hand_over() {
    bool given = true;
    for (const auto& [number, one] : held_)
        given = given && hand({record_type::kept, one.what, number}, one.fd.get());
    if (!given || !hand({record_type::all, {}, 0}, -1)) ::kill(daemon_, SIGKILL);
}

// How many descriptors may be on their way the kernel limits for all processes of a user together.
bool keeper::hand(const record& r, int fd) {
    const auto until = clock::now() + longest_handing;
    while (!send_record(socket_.get(), r, fd)) {
        if ((errno != ETOOMANYREFS && errno != ENOBUFS && errno != ENOMEM) || clock::now() >= until)
            return false;
        clock::sleep_for(10ms);
    }
    return true;
}

bool keeper::listen() {
    auto got = receive_record(socket_.get());
    if (!got) return false;
    switch (got->what.type) {
        case record_type::hold:
            if (got->fd) held_.insert_or_assign(got->what.number, held{got->what.what, std::move(got->fd)});
            break;
        case record_type::drop:
            held_.erase(got->what.number);
            break;
        case record_type::taken:
            took_ = true;
            break;
        case record_type::ready:
            ready_ = true;
            if (got->what.number != 0) let_go_of_terminal();
            break;
        default:
            break;
    }
    return true;
}

void keeper::on_signal() {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return;
    const auto signal = static_cast<int>(info.ssi_signo);
    for (const int s : passed_on)
        if (s == signal && daemon_ > 0) ::kill(daemon_, s);
    if (signal == SIGTERM || signal == SIGINT) ending_ = true;
    if (signal != SIGUSR1) return;
    replacing_ = true;
    // At any moment what it holds is whole: nothing has to be said before.
    if (daemon_ > 0) ::kill(daemon_, SIGKILL);
}

bool keeper::holds_memory() const {
    return std::any_of(held_.begin(), held_.end(),
                       [](const auto& h) { return h.second.what != contents::lock; });
}

std::optional<int> keeper::judge(int status) {
    if (ending_ || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return 0;
    const bool replaced = std::exchange(replacing_, false);
    ended_ = replaced ? "replaced" : words(status);
    if (ready_) failed_starts_ = 0;
    // By its own word, or by a signal before it had read anything.
    if (!replaced && !ready_ && (WIFEXITED(status) || !took_)) return judge_start(status);
    if (replaced || clock::now() >= started_ + early) {
        early_ends_ = 0;
        return std::nullopt;
    }
    if (++early_ends_ >= most) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (early_ends_ >= most_with_all) {
        std::erase_if(held_, [](const auto& h) { return h.second.what != contents::lock; });
        ended_ += ", again and again: what was in memory is given up";
    }
    return after(pause_after_end * early_ends_);
}

std::optional<int> keeper::judge_start(int status) {
    const int end = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (failed_starts_++ == 0) failing_since_ = clock::now();
    // Nothing is lost with it, and mostly it has said itself why it cannot start.
    if (!holds_memory() && (WIFEXITED(status) || failed_starts_ >= most)) return end;
    if (clock::now() < failing_since_ + longest_without)
        return after(std::min<std::chrono::milliseconds>(pause_after_end * failed_starts_, longest_pause));
    ::dprintf(STDERR_FILENO, "banyan-ckpt-keeper: %s does not start (%s): what was in memory is given up\n",
              command_.front().c_str(), ended_.c_str());
    return end;
}

std::optional<int> keeper::after(std::chrono::milliseconds pause) {
    const auto until = clock::now() + pause;
    for (;;) {
        const int left = clock::poll_ms(until);
        if (ending_) return 0;
        if (std::exchange(replacing_, false) || left == 0) return std::nullopt;
        pollfd signal{signals_.get(), POLLIN, 0};
        if (::poll(&signal, 1, left) > 0) on_signal();
    }
}

int keeper::watch() {
    for (;;) {
        std::array<pollfd, 2> waits{{{signals_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}}};
        if (::poll(waits.data(), waits.size(), -1) < 0) {
            clock::sleep_for(10ms);  // no memory for it, for now
            continue;
        }
        if (waits[0].revents != 0) on_signal();
        if (waits[1].revents != 0 && !listen()) socket_.reset();  // its end follows
        int status = 0;
        if (::waitpid(daemon_, &status, WNOHANG) != daemon_) continue;
        // What it said before its end counts.
        while (socket_ && listen()) {
        }
        daemon_ = -1;
        return status;
    }
}

int keeper::run() {
    const auto set = handled();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC));
    if (!signals_) return 1;
    for (;;) {
        const int status = start_daemon() ? watch() : could_not_fork;
        if (const auto end = judge(status)) return *end;
    }
}

}  // namespace banyan::ckpt::keeper
