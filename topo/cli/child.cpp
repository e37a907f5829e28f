// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/child.hpp"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.hpp"

namespace banyan::topo::cli {
namespace {

using clock = std::chrono::steady_clock;

result<void> read_until(int fd, clock::time_point until, std::size_t most, const std::string& program,
                        std::string& out) {
    char buffer[65536];
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
        if (left <= 0)
            return fail(errc::unavailable, program + " did not end in time", "try a longer --timeout");
        pollfd p{fd, POLLIN, 0};
        if (::poll(&p, 1, static_cast<int>(std::min<long long>(left, 1000))) <= 0) continue;
        const auto got = ::read(fd, buffer, sizeof buffer);
        if (got == 0) return {};
        if (got < 0 && errno != EINTR) return fail_errno("reading from " + program, errno);
        if (got > 0) out.append(buffer, static_cast<std::size_t>(got));
        if (out.size() > most) return fail(errc::exhausted, program + " prints without end");
    }
}

}  // namespace

result<std::string> output_of(const std::vector<std::string>& words, std::chrono::milliseconds timeout,
                              std::size_t most, const std::string& package, const std::string& hint) {
    std::vector<char*> argv;
    for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot open a pipe", errno);
    unique_fd in(ends[0]), out(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) return fail_errno("cannot start " + words[0], errno);
    if (child == 0) {
        ::dup2(out.get(), 1);
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    out.reset();
    std::string text;
    const auto read = read_until(in.get(), clock::now() + timeout, most, words[0], text);
    if (!read) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!read) return std::unexpected(read.error());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return fail(errc::not_found, fmt::format("{} is not installed", words[0]), "install " + package);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail(
            errc::unavailable,
            fmt::format("{} failed with status {}", words[0], WIFEXITED(status) ? WEXITSTATUS(status) : -1),
            hint);
    return text;
}

}  // namespace banyan::topo::cli
