// SPDX-License-Identifier: BSD-3-Clause
#include "common/command.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/text.hpp"

namespace banyan {
namespace {

constexpr std::size_t max_complaint = 4096;  // of standard error, the end of it is kept

struct pipe_pair {
    unique_fd read, write;
};

result<pipe_pair> make_pipe() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
    return pipe_pair{unique_fd(fds[0]), unique_fd(fds[1])};
}

/// Reads both until both are closed, the time is up or standard output is over its limit.
command_output::stop read_all(int out, int err, clock::time_point until, std::size_t max_bytes,
                              std::string& text, std::string& complaint) {
    std::array<char, 65536> buffer;
    std::array<pollfd, 2> fds{{{out, POLLIN, 0}, {err, POLLIN, 0}}};  // one below 0 is left out by poll
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        const int left = clock::poll_ms(until);
        if (left == 0) return command_output::stop::late;
        if (::poll(fds.data(), fds.size(), left) < 0) {
            if (errno == EINTR) continue;
            break;
        }
        for (auto& p : fds) {
            if (p.fd < 0 || !(p.revents & (POLLIN | POLLHUP | POLLERR))) continue;
            const auto n = ::read(p.fd, buffer.data(), buffer.size());
            if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
                p.fd = -1;
            } else if (n > 0) {
                auto& into = &p == fds.data() ? text : complaint;
                into.append(buffer.data(), static_cast<std::size_t>(n));
            }
        }
        if (complaint.size() > max_complaint) complaint.erase(0, complaint.size() - max_complaint);
        if (text.size() > max_bytes) return command_output::stop::too_much;
    }
    return command_output::stop::ended;
}

/// Ends it when `until` passes. Gently first: a client of the fabric simulator that is killed keeps its slot
/// there.
child_end end_by(child& running, clock::time_point until) {
    for (const int signal : {SIGTERM, SIGKILL}) {
        if (running.ends_by(until)) break;
        running.send(signal);
        until = clock::now() + std::chrono::seconds(1);
    }
    return running.wait();
}

std::string last_line_of(std::string_view text) {
    text = trim(text);
    return std::string(trim(text.substr(text.find_last_of('\n') + 1)));
}

}  // namespace

result<command_output> capture(const std::vector<std::string>& argv, const command_limits& limits) {
    const auto until = clock::now() + limits.timeout;
    const unique_fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    BANYAN_TRY(auto out, make_pipe());
    pipe_pair err;
    if (!limits.errors_are_ours) {
        BANYAN_TRY(err, make_pipe());
    }
    child_setup setup;
    setup.in = nothing.get();
    setup.out = out.write.get();
    setup.err = err.write.get();
    BANYAN_TRY(auto running, child::start(argv, setup));
    out.write.reset();
    err.write.reset();
    command_output got;
    std::string complaint;
    got.stopped = read_all(out.read.get(), err.read.get(), until, limits.max_bytes, got.text, complaint);
    got.end = end_by(running, got.stopped == command_output::stop::ended ? until : clock::now());
    got.last_line = last_line_of(complaint);
    return got;
}

result<std::string> run_command(const std::vector<std::string>& argv, std::chrono::milliseconds timeout,
                                std::size_t max_bytes) {
    BANYAN_TRY(auto got, capture(argv, {timeout, max_bytes}));
    if (got.good()) return std::move(got.text);
    switch (got.stopped) {
        case command_output::stop::late:
            return fail(errc::unavailable,
                        fmt::format("{} did not end within {} ms", argv[0], timeout.count()));
        case command_output::stop::too_much:
            return fail(errc::exhausted,
                        fmt::format("{} printed more than {}", argv[0], format_bytes(max_bytes)));
        case command_output::stop::ended:
            break;
    }
    return fail(errc::unavailable, fmt::format("{} ended with {}: {}", argv[0], got.end.code, got.last_line));
}

}  // namespace banyan
