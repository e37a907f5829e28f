// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/apart.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.hpp"
#include "common/fd.hpp"
#include "common/text.hpp"

namespace banyan::sweep {
namespace {

constexpr std::size_t longest_answer = 4u << 20;

/// A look that runs, and what it has said so far.
struct running {
    pid_t pid = -1;
    unique_fd from{};
    unique_fd said{};  ///< in memory: what it prints beside its answer
    std::string text{};
    bool too_much = false;
};

/// Keeps nothing of ours open: whoever reads our output until its end must not wait for a look that hangs.
void take_leave(int& into, int said) {
    constexpr int own = STDERR_FILENO + 1;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::dup2(said, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
    ::dup2(into, own);
    ::close_range(own + 1, ~0u, 0);
    into = own;
}

[[noreturn]] void be_the_child(const look& work, int into, int said) {
    take_leave(into, said);
    std::string text;
    try {
        text = work().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    } catch (const std::exception& e) {
        fmt::print(stderr, "a bug: {}\n", e.what());
        (void)std::fflush(stderr);
        ::_exit(1);
    }
    for (std::size_t at = 0; at < text.size();) {
        const auto put = ::write(into, text.data() + at, text.size() - at);
        if (put < 0 && errno != EINTR) break;
        if (put > 0) at += static_cast<std::size_t>(put);
    }
    ::_exit(0);
}

result<running> start(const look& work) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
    running out;
    out.from.reset(ends[0]);
    const unique_fd into(ends[1]);
    out.said.reset(::memfd_create("banyan-sweep", MFD_CLOEXEC));
    if (!out.said) return fail_errno("cannot have memory for a look", errno);
    (void)std::fflush(nullptr);  // a library that calls exit() there would print it again
    out.pid = ::fork();
    if (out.pid < 0) return fail_errno("cannot fork", errno);
    if (out.pid == 0) be_the_child(work, into.get(), out.said.get());
    ::setpgid(out.pid, out.pid);
    return out;
}

/// Takes what has come; false at its end.
bool take(running& r) {
    std::array<char, 65'536> buffer;
    const auto got = ::read(r.from.get(), buffer.data(), buffer.size());
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    r.text.append(buffer.data(), static_cast<std::size_t>(got));
    r.too_much = r.text.size() > longest_answer;
    return got > 0 && !r.too_much;
}

void hear_all(std::vector<result<running>>& all, deadline until) {
    std::vector<pollfd> fds;
    for (const auto& one : all) fds.push_back({one ? one->from.get() : -1, POLLIN, 0});
    for (auto open = all.size(); open > 0;) {
        open = 0;
        const int left = clock::poll_ms(until);
        if (::poll(fds.data(), fds.size(), left) < 0 && errno != EINTR) return;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (fds[i].fd >= 0 && fds[i].revents != 0 && !take(*all[i])) {
                fds[i].fd = -1;
                all[i]->from.reset();
            }
            open += fds[i].fd >= 0 ? 1 : 0;
        }
        if (left == 0) return;
    }
}

/// How it ended that said nothing; it has closed its pipe, so its end is near.
std::string end_of(pid_t pid) {
    constexpr auto a_moment = std::chrono::seconds(1);
    const auto until = clock::now() + a_moment;
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (clock::now() > until) return "ended without an answer";
        ::poll(nullptr, 0, 1);
    }
    return WIFSIGNALED(status) ? fmt::format("crashed with signal {}", WTERMSIG(status))
                               : fmt::format("ended with code {} and no answer", WEXITSTATUS(status));
}

/// The last of what it printed, as ": TEXT"; libslurm ends the process and tells why.
std::string last_words(const running& r) {
    std::array<char, 1024> end{};
    const auto size = ::lseek(r.said.get(), 0, SEEK_END);
    const auto from = std::max<off_t>(0, size - std::ssize(end));
    const auto got = ::pread(r.said.get(), end.data(), end.size(), from);
    const auto text = trim({end.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got))});
    const auto line = trim(text.substr(text.find_last_of('\n') + 1));
    return line.empty() ? "" : fmt::format(": {}", line);
}

result<nlohmann::json> answer_of(running& r, double seconds) {
    if (r.too_much)
        return fail(errc::exhausted, fmt::format("the answer is larger than {} bytes", longest_answer));
    if (r.from)
        return fail(errc::unavailable, fmt::format("no answer within {:.3g} s{}", seconds, last_words(r)));
    auto told = nlohmann::json::parse(r.text, nullptr, false);
    if (!told.is_discarded()) return told;
    return fail(errc::internal, fmt::format("the look {}{}", end_of(r.pid), last_words(r)));
}

}  // namespace

std::vector<result<nlohmann::json>> look_apart(const std::vector<look>& looks, deadline until) {
    const std::chrono::duration<double> given = until - clock::now();
    std::vector<result<running>> all;
    all.reserve(looks.size());
    for (const auto& one : looks) all.push_back(start(one));
    hear_all(all, until);
    std::vector<result<nlohmann::json>> out;
    for (auto& one : all) {
        out.push_back(one ? answer_of(*one, given.count()) : std::unexpected(one.error()));
        if (!one) continue;
        ::kill(-one->pid, SIGKILL);
        ::waitpid(one->pid, nullptr, WNOHANG);
    }
    return out;
}

result<nlohmann::json> look_apart(const look& one, deadline until) {
    return std::move(look_apart(std::vector{one}, until).front());
}

}  // namespace banyan::sweep
