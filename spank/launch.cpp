// SPDX-License-Identifier: BSD-3-Clause
//
// Starting the checkpoint daemon where no service has: it must outlive the prolog, the step and the job, also
// where a step starts it.
// slurmd ends a prolog by killing its process group, hence a session of its own; the pipe of the prolog's
// output must be closed, or slurmd waits. Its standard error is read until it answers or ends: what stands
// there is why it ended.
#include "spank/launch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/child.hpp"
#include "common/clock.hpp"
#include "common/config.hpp"
#include "common/fd.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "common/wire.hpp"
#include "spank/outside_job.hpp"

namespace banyan::spank {
namespace {

constexpr auto start_timeout = std::chrono::seconds(5);
constexpr auto retry_pause = std::chrono::milliseconds(5);
constexpr std::size_t most_words = 16 * 1024;  // that a daemon which does not start may say
constexpr std::size_t most_reason = 1024;      // of them in the user's line

bool answers(const std::string& socket) {
    return wire::connect_unix(socket, clock::now() + std::chrono::seconds(1)).has_value();
}

/// No socket, or a connection that ended without a word: the daemon has left, or died. What a daemon refuses,
/// it says.
bool is_gone(const error& e) { return e.code == errc::not_found || e.code == errc::unavailable; }

/// In the grandchild: nothing but the daemon's own argument list and environment is taken along.
[[noreturn]] void become(char* const* arguments, char* const* environment, int words,
                         const std::vector<std::string>& cgroups) {
    // One that cannot be entered is left to Slurm.
    for (const auto& file : cgroups)
        if (const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC); fd >= 0) {
            [[maybe_unused]] const auto moved = ::write(fd, "0", 1);
            ::close(fd);
        }
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(words, STDERR_FILENO);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(null, fd);
    ::close_range(3, ~0u, 0);
    ::umask(022);
    if (::chdir("/") == 0) ::execve(arguments[0], arguments, environment);
    ::dprintf(STDERR_FILENO, "cannot run %s: %s\n", arguments[0], std::strerror(errno));
    ::_exit(127);
}

/// The end of the daemon's standard error that we read.
result<unique_fd> start(std::vector<std::string> command) {
    std::vector<std::string> variables{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    std::vector<char*> arguments, environment;
    for (auto& w : command) arguments.push_back(w.data());
    for (auto& v : variables) environment.push_back(v.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);

    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
        return fail_errno("cannot start the checkpoint daemon: no pipe", errno);
    unique_fd from(pipe[0]), to(pipe[1]);
    constexpr std::size_t most_cgroups = 16 * 1024;
    const auto cgroups = cgroups_outside_job(read_file("/proc/self/cgroup", most_cgroups).value_or(""));
    const auto forked = run_forked([&] {
        ::setsid();
        const pid_t daemon = ::fork();
        if (daemon == 0) become(arguments.data(), environment.data(), to.get(), cgroups);
        return daemon < 0 ? 1 : 0;
    });
    if (!forked || forked->code != 0)
        return fail(errc::exhausted, "cannot start the checkpoint daemon: fork failed");
    return from;
}

/// Reads what the daemon says until it lets go of its standard error, which is when it answers or ends. False
/// when it has done neither by `until`.
bool read_words(int from, clock::time_point until, std::string& words) {
    std::array<char, 4096> some;
    for (;;) {
        const int left = clock::poll_ms(until);
        pollfd ready{from, POLLIN, 0};
        const int some_came = ::poll(&ready, 1, left);
        if (some_came < 0 ? errno == EINTR : some_came == 0 && left > 0) continue;
        if (some_came <= 0) return false;
        const auto got = ::read(from, some.data(), some.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        words.append(some.data(), static_cast<std::size_t>(got));
        if (words.size() > most_words) words.erase(0, words.size() - most_words);
    }
}

/// The daemon's last words are the reason, as one line that a terminal may show.
std::string reason_in(const std::string& words) {
    std::string last = "it ended without a word";
    for (std::size_t at = 0; at < words.size();) {
        const auto end = std::min(words.find('\n', at), words.size());
        if (const auto line = trim(std::string_view(words).substr(at, end - at)); !line.empty()) last = line;
        at = end + 1;
    }
    constexpr std::string_view own = "banyan-ckptd: ";
    if (last.starts_with(own)) last.erase(0, own.size());
    return printable(last.substr(0, most_reason));
}

}  // namespace

std::string config_of(const settings& s) {
    return s.config.empty() ? installed_config_path().string() : s.config;
}

bool daemon_answers(const daemon_paths& paths) { return answers(paths.socket); }

result<daemon_paths> find_daemon(const settings& s, const std::string& node) {
    daemon_paths out;
    out.config = config_of(s);
    out.node = node;
    BANYAN_TRY(const auto file, config_file::load(out.config));
    // The daemons check their tables; here only the one key that both need is read of each.
    out.socket = file.section("ckptd", node).text("socket");
    out.agent = file.section("fault", node).text("agent_socket");
    return out;
}

namespace {

/// Returns when the daemon answers on its socket.
result<void> ensure_daemon(const settings& s, const daemon_paths& paths, const std::string& address) {
    if (answers(paths.socket)) return {};
    const auto program = s.program();
    const auto log = ckpt::socket_path(s.ckptd_log, paths.node);
    BANYAN_CHECK(check_trusted(program));
    std::vector<std::string> command{program, "--node",           paths.node, "--bind",
                                     address, "--exit-when-idle", "--detach", "--keeper"};
    if (!paths.config.empty()) command.insert(command.end(), {"--config", paths.config});
    if (!log.empty()) command.insert(command.end(), {"--log", log});
    BANYAN_TRY(const auto from, start(std::move(command)));
    const auto until = clock::now() + start_timeout;
    std::string words;
    const bool decided = read_words(from.get(), until, words);
    // Another job's prolog may have been faster: its daemon is as good, and ours has ended.
    while (!answers(paths.socket)) {
        if (decided)
            return fail(errc::unavailable, "the checkpoint daemon cannot start: " + reason_in(words),
                        log.empty() ? "" : "its log is " + log);
        if (clock::now() > until)
            return fail(errc::unavailable, fmt::format("{} does not answer on {}", program, paths.socket),
                        log.empty() ? "give it a log: ckptd_log= on its line in plugstack.conf"
                                    : fmt::format("look into {}", log));
        clock::sleep_for(retry_pause);
    }
    return {};
}

}  // namespace

result<ckpt::session_answer> open_at_daemon(const settings& s, const daemon_paths& paths,
                                            const std::string& address, const ckpt::session_request& request,
                                            std::chrono::milliseconds timeout) {
    const auto until = clock::now() + timeout;
    for (;;) {
        BANYAN_CHECK(ensure_daemon(s, paths, address));
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now());
        auto answer = ckpt::session_open(paths.socket, request, left);
        if (answer || !is_gone(answer.error()) || clock::now() >= until) return answer;
        clock::sleep_for(retry_pause);
    }
}

}  // namespace banyan::spank
