// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/keeper/keeper.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

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
constexpr auto pause_after_early_end = 200ms;
constexpr std::array passed_on{SIGTERM, SIGINT, SIGHUP};

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
    started_ = clock::now();
    ready_ = false;
    hand_over();
    return true;
}

// More than a socket's buffer holds would wait for the daemon to read, and it may die first: then the socket
// ends, and so does this.
void keeper::hand_over() {
    for (const auto& [number, one] : held_)
        if (!send_record(socket_.get(), {record_type::kept, one.what, number}, one.fd.get())) return;
    send_record(socket_.get(), {record_type::all, {}, 0});
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
        if (s == signal) ::kill(daemon_, s);
    if (signal != SIGUSR1) return;
    replacing_ = true;
    ::kill(daemon_, SIGKILL);  // at any moment what it holds is whole: nothing has to be said before
}

std::optional<int> keeper::judge(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    // It has said itself why it cannot start.
    if (WIFEXITED(status) && !ready_ && held_.empty()) return WEXITSTATUS(status);
    ended_ = std::exchange(replacing_, false) ? "replaced" : words(status);
    if (ended_ == "replaced" || clock::now() >= started_ + early) {
        early_ends_ = 0;
        return std::nullopt;
    }
    if (++early_ends_ >= most) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (early_ends_ >= most_with_all) {
        held_.clear();
        ended_ += ", again and again: what was in memory is given up";
    }
    std::this_thread::sleep_for(pause_after_early_end * early_ends_);
    return std::nullopt;
}

int keeper::run() {
    const auto set = handled();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC));
    if (!signals_ || !start_daemon()) return 1;
    for (;;) {
        std::array<pollfd, 2> waits{{{signals_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}}};
        if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return 1;
        if (waits[0].revents != 0) on_signal();
        if (waits[1].revents != 0 && !listen()) socket_.reset();  // its end follows
        int status = 0;
        if (::waitpid(daemon_, &status, WNOHANG) != daemon_) continue;
        // What it said before its end counts.
        while (socket_ && listen()) {
        }
        if (const auto end = judge(status)) return *end;
        if (!start_daemon()) return 1;
    }
}

}  // namespace banyan::ckpt::keeper
