// SPDX-License-Identifier: BSD-3-Clause
//
// Runs ibnetdiscover itself, without a shell and not for ever.
#include <chrono>
#include <cstring>
#include <memory>

#include <banyan/topo/reader.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "topo/cli/cli.hpp"

namespace banyan::topo::cli {
namespace {

using clock = std::chrono::steady_clock;

result<void> read_until(int fd, clock::time_point until, std::string& out) {
    char buffer[65536];
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
        if (left <= 0)
            return fail(errc::unavailable, "ibnetdiscover did not end in time",
                        "is the subnet manager up? try a longer --timeout");
        pollfd p{fd, POLLIN, 0};
        if (::poll(&p, 1, static_cast<int>(std::min<long long>(left, 1000))) <= 0) continue;
        const auto got = ::read(fd, buffer, sizeof buffer);
        if (got == 0) return {};
        if (got < 0 && errno != EINTR) return fail_errno("reading from ibnetdiscover", errno);
        if (got > 0) out.append(buffer, static_cast<std::size_t>(got));
        if (out.size() > max_dump_bytes) return fail(errc::exhausted, "ibnetdiscover prints without end");
    }
}

result<std::string> run_ibnetdiscover(const std::string& program, std::chrono::milliseconds timeout) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot open a pipe", errno);
    unique_fd in(ends[0]), out(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) return fail_errno("cannot start ibnetdiscover", errno);
    if (child == 0) {
        ::dup2(out.get(), 1);
        ::execlp(program.c_str(), program.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }
    out.reset();
    std::string text;
    const auto read = read_until(in.get(), clock::now() + timeout, text);
    if (!read) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!read) return std::unexpected(read.error());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return fail(errc::not_found, fmt::format("{} is not installed", program), "install infiniband-diags");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail(
            errc::unavailable,
            fmt::format("{} failed with status {}", program, WIFEXITED(status) ? WEXITSTATUS(status) : -1),
            "its own message stands above; it needs access to an InfiniBand port");
    return text;
}

}  // namespace

void add_discover(CLI::App& app, action& chosen) {
    struct options {
        std::string output, timeout = "60s", program = "ibnetdiscover";
    };
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand("discover", "Run ibnetdiscover and keep its output");
    sub->add_option("-o,--output", o->output, "file to replace (default: standard output)");
    sub->add_option("--timeout", o->timeout, "give up after this time (default 60s)");
    sub->add_option("--program", o->program, "the program to run (default ibnetdiscover)");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto timeout, parse_duration(o->timeout));
            BANYAN_TRY(const auto text, run_ibnetdiscover(o->program, timeout));
            BANYAN_TRY(const auto dump, read_ibnetdiscover(text));
            if (o->output.empty()) {
                fmt::print("{}", text);
            } else {
                BANYAN_CHECK(write_file_atomic(o->output, text));
                fmt::print("{}: {} nodes\n", o->output, dump.nodes.size());
            }
            return fine;
        };
    });
}

}  // namespace banyan::topo::cli
