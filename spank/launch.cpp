// SPDX-License-Identifier: BSD-3-Clause
//
// Starting the checkpoint daemon where no service has: it must outlive the prolog, the step and the job.
// slurmd ends a prolog by killing its process group, hence a session of its own; the pipe of the prolog's
// output must be closed, or slurmd waits.
#include "spank/launch.hpp"

#include <cerrno>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/config.hpp"
#include "common/file.hpp"
#include "common/wire.hpp"

namespace banyan::spank {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto start_timeout = std::chrono::seconds(5);
constexpr auto breath = std::chrono::milliseconds(5);

bool answers(const std::string& socket) {
    return wire::connect_unix(socket, clock::now() + std::chrono::seconds(1)).has_value();
}

/// No socket, or a connection that ended without a word: the daemon has left, or died. What a daemon refuses,
/// it says.
bool is_gone(const error& e) { return e.code == errc::not_found || e.code == errc::unavailable; }

/// In the grandchild: nothing but the daemon's own argument list and environment is taken along.
[[noreturn]] void become(char* const* arguments, char* const* environment) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
    ::close_range(3, ~0u, 0);
    ::umask(022);
    if (::chdir("/") != 0) ::_exit(126);
    ::execve(arguments[0], arguments, environment);
    ::_exit(127);
}

result<void> start(std::vector<std::string> words) {
    std::vector<std::string> variables{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    std::vector<char*> arguments, environment;
    for (auto& w : words) arguments.push_back(w.data());
    for (auto& v : variables) environment.push_back(v.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);

    const pid_t child = ::fork();
    if (child < 0) return fail_errno("cannot start the checkpoint daemon", errno);
    if (child == 0) {
        ::setsid();
        const pid_t daemon = ::fork();
        if (daemon == 0) become(arguments.data(), environment.data());
        ::_exit(daemon < 0 ? 1 : 0);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) return fail(errc::exhausted, "cannot start the checkpoint daemon: fork failed");
    return {};
}

}  // namespace

std::string config_of(const settings& s) {
    return s.config.empty() ? installed_config_path().string() : s.config;
}

result<daemon_paths> find_daemon(const settings& s, const std::string& node) {
    daemon_paths out;
    out.config = config_of(s);
    out.node = node;
    BANYAN_TRY(const auto file, config_file::load(out.config));
    // The daemon checks its table; here only the one key that both need is read.
    out.socket = ckpt::socket_path(file.section("ckptd").string("socket", "/run/banyan/ckptd.sock"), node);
    return out;
}

namespace {

/// Returns when the daemon answers on its socket.
result<void> ensure_daemon(const settings& s, const daemon_paths& paths, const std::string& address) {
    if (answers(paths.socket)) return {};
    BANYAN_CHECK(check_trusted(s.ckptd));
    std::vector<std::string> words{s.ckptd, "--node", paths.node, "--bind", address, "--exit-when-idle"};
    if (!paths.config.empty()) words.insert(words.end(), {"--config", paths.config});
    if (!s.ckptd_log.empty())
        words.insert(words.end(), {"--log", ckpt::socket_path(s.ckptd_log, paths.node)});
    BANYAN_CHECK(start(std::move(words)));
    const auto until = clock::now() + start_timeout;
    while (!answers(paths.socket)) {
        if (clock::now() > until)
            return fail(errc::unavailable, fmt::format("{} does not answer on {}", s.ckptd, paths.socket),
                        s.ckptd_log.empty()
                            ? "add ckptd_log= to its line in plugstack.conf and look there"
                            : fmt::format("look into {}", ckpt::socket_path(s.ckptd_log, paths.node)));
        std::this_thread::sleep_for(breath);
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
        std::this_thread::sleep_for(breath);
    }
}

}  // namespace banyan::spank
