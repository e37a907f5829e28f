// SPDX-License-Identifier: BSD-3-Clause
#include "test/bench/ckpt_fleet.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.hpp"
#include "common/munge.hpp"
#include "test/built.hpp"

namespace banyan::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds start_timeout{20}, open_timeout{60}, close_timeout{10};

result<pid_t> spawn(const std::vector<std::string>& command, const std::string& log,
                    const std::vector<std::pair<std::string, std::string>>& environment) {
    std::vector<char*> argv;
    for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) return fail_errno("cannot fork", errno);
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    for (const auto& [variable, value] : environment) ::setenv(variable.c_str(), value.c_str(), 1);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
}

/// Until `done`, the program's end or the time.
result<void> started(pid_t pid, const std::string& what, const std::string& log,
                     const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + start_timeout;
    while (!done()) {
        const bool ended = ::waitpid(pid, nullptr, WNOHANG) == pid;
        if (!ended && std::chrono::steady_clock::now() < until) {
            ::usleep(5'000);
            continue;
        }
        const auto said = read_file(log, 64 * 1024).value_or("");
        return fail(errc::unavailable, fmt::format("{} did not start: {}", what, said.substr(0, 400)));
    }
    return {};
}

void end(pid_t pid, int signal) {
    if (pid <= 0) return;
    ::kill(pid, signal);
    ::kill(pid, SIGCONT);
    ::waitpid(pid, nullptr, 0);
}

}  // namespace

result<std::unique_ptr<fleet>> fleet::start(const options& o) {
    std::unique_ptr<fleet> out(new fleet);
    out->options_ = o;
    std::string pattern = (fs::temp_directory_path() / "banyan-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) return fail_errno(fmt::format("cannot make {}", pattern), errno);
    out->dir_ = pattern;
    ::chmod(pattern.c_str(), 0755);
    BANYAN_CHECK(out->start_munged());
    // Below what the kernel gives to others, and another one for each process.
    static int count = 0;
    out->port_ = static_cast<std::uint16_t>(10000 + (::getpid() * 7 + count++) % 20000);
    std::ofstream(out->dir_ / "banyan.conf") << fmt::format(
        "[munge]\nsocket = \"{0}/munge/socket\"\n[ckptd]\nsocket = \"{0}/%n.sock\"\nport = {1}\n"
        "log_level = \"warn\"\n{2}",
        out->dir_.string(), out->port_, o.extra);
    for (std::uint32_t node = 1; node <= o.nodes; ++node) BANYAN_CHECK(out->start_node(node));
    return out;
}

fleet::~fleet() {
    for (const auto& [node, pid] : daemons_) end(pid, SIGKILL);
    end(munged_, SIGTERM);
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
}

result<void> fleet::start_munged() {
    const auto key = (dir_ / "munge.key").string(), m = (dir_ / "munge").string();
    const auto log = (dir_ / "munged.out").string();
    {
        std::ofstream out(key, std::ios::binary);
        for (int i = 0; i < 128; ++i) out.put(static_cast<char>(i * 37 + 11));
    }
    ::chmod(key.c_str(), 0600);
    ::mkdir(m.c_str(), 0755);
    BANYAN_TRY(munged_,
               spawn({"munged", "--foreground", "--force", "--key-file", key, "--socket", m + "/socket",
                      "--pid-file", m + "/pid", "--log-file", m + "/log", "--seed-file", m + "/seed"},
                     log, {}));
    return started(munged_, "munged", log, [&] { return munge::encode(m + "/socket", "x").has_value(); });
}

std::string fleet::address(std::uint32_t node) const {
    return fmt::format("127.{}.{}.{}", 100 + port_ % 100, 1 + node / 200, 1 + node % 200);
}

result<void> fleet::start_node(std::uint32_t node) {
    const auto log = (dir_ / (name(node) + ".log")).string();
    BANYAN_TRY(const auto pid, spawn({banyan::testing::built("banyan-ckptd"), "--config",
                                      dir_ / "banyan.conf", "--node", name(node), "--bind", address(node)},
                                     log, options_.environment));
    daemons_[node] = pid;
    auto up = started(pid, "the daemon of " + name(node), log,
                      [&] { return ckpt::status(socket(node), std::chrono::seconds(1)).has_value(); });
    return up;
}

void fleet::kill_node(std::uint32_t node) {
    end(daemons_.at(node), SIGKILL);
    daemons_.erase(node);
}

ckpt::session_request fleet::request(std::uint64_t job, std::uint32_t active, std::uint32_t per_node,
                                     std::uint64_t bytes) const {
    ckpt::session_request r;
    r.job = job;
    r.uid = ::geteuid();
    r.gid = ::getegid();
    r.world = active * per_node;
    r.bytes = bytes;
    std::uint32_t rank = 0;
    for (std::uint32_t node = 1; node <= options_.nodes; ++node) {
        if (node > active) {
            r.spares.push_back({name(node), address(node)});
            continue;
        }
        ckpt::session_node n{name(node), address(node), {}, node % active};
        for (std::uint32_t k = 0; k < per_node; ++k) n.ranks.push_back(rank++);
        r.nodes.push_back(std::move(n));
    }
    return r;
}

result<void> fleet::open_on(std::uint32_t node, ckpt::session_request r) const {
    r.self = name(node);
    BANYAN_TRY(const auto answer, ckpt::session_open(socket(node), r, open_timeout));
    if (!answer.warning.empty()) return fail(errc::unavailable, answer.warning);
    return {};
}

result<void> fleet::open(ckpt::session_request r) const {
    for (const auto& [node, pid] : daemons_) BANYAN_CHECK(open_on(node, r));
    return {};
}

void fleet::close(std::uint64_t job) const {
    for (const auto& [node, pid] : daemons_)
        (void)ckpt::session_close(socket(node), job, false, close_timeout);
}

double fleet::cpu(std::uint32_t node) const {
    clockid_t clock{};
    timespec t{};
    if (::clock_getcpuclockid(daemons_.at(node), &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace banyan::bench
