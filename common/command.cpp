// SPDX-License-Identifier: BSD-3-Clause
#include "common/command.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/text.hpp"

extern char** environ;

namespace banyan {
namespace {

using clock = std::chrono::steady_clock;

struct pipe_pair {
    unique_fd read, write;
};

result<pipe_pair> make_pipe() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
    return pipe_pair{unique_fd(fds[0]), unique_fd(fds[1])};
}

result<pid_t> spawn(const std::vector<std::string>& argv, int out, int err) {
    std::vector<char*> words;
    for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, out, 1);
    ::posix_spawn_file_actions_adddup2(&files, err, 2);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t child = -1;
    const int rc = ::posix_spawnp(&child, words[0], &files, &attributes, words.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    if (rc != 0) return fail_errno("cannot run " + argv[0], rc);
    return child;
}

// Exit status; ends the child when `until` passes.
int reap(pid_t child, clock::time_point until) {
    int status = 0;
    for (auto kill_at = until; ::waitpid(child, &status, WNOHANG) == 0; ::poll(nullptr, 0, 2)) {
        if (clock::now() < kill_at) continue;
        // Gently first: a client of the fabric simulator that is killed keeps its slot there.
        ::kill(child, kill_at == until ? SIGTERM : SIGKILL);
        kill_at = clock::now() + std::chrono::seconds(1);
    }
    return status;
}

}  // namespace

result<std::string> run_command(const std::vector<std::string>& argv, std::chrono::milliseconds timeout,
                                std::size_t max_bytes) {
    constexpr std::size_t max_complaint = 4096;
    auto until = clock::now() + timeout;
    BANYAN_TRY(auto out, make_pipe());
    BANYAN_TRY(auto err, make_pipe());
    BANYAN_TRY(const auto child, spawn(argv, out.write.get(), err.write.get()));
    out.write.reset();
    err.write.reset();
    std::string text, complaint;
    std::array<char, 65536> buffer;
    std::array<pollfd, 2> fds{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
    bool too_much = false, late = false;
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
        late = left <= 0;
        if (late || too_much) break;
        if (::poll(fds.data(), fds.size(), static_cast<int>(std::min<long long>(left, 60'000))) < 0 &&
            errno != EINTR)
            break;
        for (auto& p : fds) {
            if (p.fd < 0 || !(p.revents & (POLLIN | POLLHUP | POLLERR))) continue;
            const auto n = ::read(p.fd, buffer.data(), buffer.size());
            if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
                p.fd = -1;
            } else if (n > 0) {
                auto& into = &p == fds.data() ? text : complaint;
                into.append(buffer.data(), static_cast<std::size_t>(n));
                if (complaint.size() > max_complaint) complaint.erase(0, complaint.size() - max_complaint);
                too_much = text.size() > max_bytes;
            }
        }
    }
    if (too_much || late) until = clock::now();
    const int status = reap(child, until);
    if (late)
        return fail(errc::unavailable, fmt::format("{} did not end within {} ms", argv[0], timeout.count()));
    if (too_much)
        return fail(errc::exhausted,
                    fmt::format("{} printed more than {}", argv[0], format_bytes(max_bytes)));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        const auto last =
            trim(std::string_view(complaint).substr(complaint.find_last_of('\n', complaint.size() - 2) + 1));
        return fail(errc::unavailable,
                    fmt::format("{} ended with {}: {}", argv[0],
                                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), last));
    }
    return text;
}

}  // namespace banyan
