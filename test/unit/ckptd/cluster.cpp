// SPDX-License-Identifier: BSD-3-Clause
#include "cluster.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.hpp"
#include "common/munge.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"

namespace ckptd_test {
namespace {

namespace fs = std::filesystem;

constexpr auto no_answer_after = 60s;  // of the kernel's time: then something is broken

pid_t spawn(const std::vector<std::string>& command, const std::string& output) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ::dup2(out, 1);
    ::dup2(out, 2);
    std::vector<char*> argv;
    for (const auto& c : command) argv.push_back(const_cast<char*>(c.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
}

std::uint16_t free_port(const std::string& address) {
    const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    ::inet_pton(AF_INET, address.c_str(), &a.sin_addr);
    socklen_t n = sizeof a;
    ::bind(s, reinterpret_cast<sockaddr*>(&a), n);
    ::getsockname(s, reinterpret_cast<sockaddr*>(&a), &n);
    ::close(s);
    return ntohs(a.sin_port);
}

void stop(pid_t pid, int signal) {
    ::kill(pid, signal);
    ::waitpid(pid, nullptr, 0);
}

/// What explains a failed test, where a gate asks for it (BANYAN_KEEP). The rest may be large.
void keep_logs(const fs::path& dir, const fs::path& keep) {
    std::error_code ignored;
    const auto to = keep / dir.filename();
    fs::create_directories(to, ignored);
    for (const auto& entry : fs::directory_iterator(dir, ignored))
        if (const auto kind = entry.path().extension(); kind == ".log" || kind == ".out")
            fs::copy_file(entry.path(), to / entry.path().filename(), ignored);
}

}  // namespace

banyan::testing::idle_clock& idle_time() {
    static banyan::testing::idle_clock clock(banyan::testing::scratch_path("clock-of"));
    return clock;
}

cluster::cluster(options o) : options_(std::move(o)) {
    idle_time();
    static int count = 0;
    base_ = 1 + (::getpid() + count++) % 20;
    std::string pattern = (fs::temp_directory_path() / "banyan-ckptd-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
    ::chmod(dir_.c_str(), 0755);
    {
        std::ofstream key(dir_ + "/munge.key", std::ios::binary);
        for (int i = 0; i < 128; ++i) key.put(static_cast<char>(i * 37 + 11));
    }
    ::chmod((dir_ + "/munge.key").c_str(), 0600);
    ::mkdir((dir_ + "/munge").c_str(), 0755);
    const auto m = dir_ + "/munge/";
    munged_ =
        spawn({"munged", "--foreground", "--force", "--key-file", dir_ + "/munge.key", "--socket",
               m + "socket", "--pid-file", m + "pid", "--log-file", m + "log", "--seed-file", m + "seed"},
              dir_ + "/munged.out");
    if (!eventually([&] { return banyan::munge::encode(m + "socket", "x").has_value(); }))
        throw std::runtime_error("munged did not start: see " + dir_);
    port_ = options_.net ? 20000 : free_port(addr(1));
    std::ofstream(dir_ + "/banyan.conf")
        << "[munge]\nsocket = \"" << m << "socket\"\n[fault]\nagent_socket = \"" << dir_
        << "/agent-%n.sock\"\n[ckptd]\nsocket = \"" << dir_ << "/%n.sock\"\nport = " << port_ << "\n"
        << options_.extra;
    for (int i = 1; i <= options_.nodes; ++i)
        if (!start(i)) throw std::runtime_error("banyan-ckptd did not start: see " + dir_);
}

cluster::~cluster() {
    for (const auto& [node, pid] : daemons_) {
        ::kill(pid, SIGCONT);
        stop(pid, SIGKILL);
    }
    stop(munged_, SIGTERM);
    std::error_code ignored;
    if (const char* keep = std::getenv("BANYAN_KEEP")) keep_logs(dir_, fs::path(keep) / "ckptd");
    fs::remove_all(dir_, ignored);
}

std::string cluster::log(int node) const {
    return banyan::read_file(dir_ + "/" + name(node) + ".log", 1 << 20).value_or("");
}

bool cluster::start(int node) {
    std::vector<std::string> command = options_.before[node];
    if (options_.net)
        for (auto& word : options_.net->enter(node)) command.push_back(std::move(word));
    for (const std::string& word :
         {banyan::testing::built("banyan-ckptd"), std::string("--config"), dir_ + "/banyan.conf",
          std::string("--node"), name(node), std::string("--bind"), addr(node)})
        command.push_back(word);
    command.insert(command.end(), options_.arguments.begin(), options_.arguments.end());
    daemons_[node] = spawn(command, dir_ + "/" + name(node) + ".log");
    return eventually([&] { return banyan::ckpt::status(socket(node), 1s).has_value(); });
}

void cluster::kill(int node, int signal) {
    if (signal == SIGSTOP || signal == SIGCONT || signal == SIGUSR1) {
        ::kill(daemons_.at(node), signal);
        return;
    }
    stop(daemons_.at(node), signal);
    daemons_.erase(node);
}

json attach_of(std::uint64_t job, std::int64_t rank, std::uint32_t world, const json& bytes,
               const json& more) {
    using banyan::ckpt::local_protocol;
    json out{{"job", job},
             {"rank", rank},
             {"world", world},
             {"bytes", bytes},
             {"protocol", {local_protocol.oldest, local_protocol.newest}}};
    out.update(more);
    return out;
}

json cluster::status(int node) const {
    const auto text = banyan::ckpt::status(socket(node), 3s);
    return text ? json::parse(*text) : json();
}

json cluster::session(int node, std::uint64_t job) const {
    const auto all = status(node);
    if (all.is_object())
        for (const auto& s : all["sessions"])
            if (s["job"] == job) return s;
    return {};
}

banyan::ckpt::session_request cluster::request(std::uint64_t job, int active, int ranks_per_node,
                                               const std::string& storage, std::uint64_t flush) const {
    banyan::ckpt::session_request r;
    r.job = job;
    r.uid = ::geteuid();
    r.gid = ::getegid();
    r.world = static_cast<std::uint32_t>(active * ranks_per_node);
    r.dir = storage;
    r.flush = flush;
    std::uint32_t rank = 0;
    for (int i = 1; i <= options_.nodes; ++i) {
        if (i > active) {
            r.spares.push_back({name(i), addr(i)});
            continue;
        }
        banyan::ckpt::session_node n{name(i), addr(i), {}, static_cast<std::uint32_t>(i % active)};
        for (int k = 0; k < ranks_per_node; ++k) n.ranks.push_back(rank++);
        r.nodes.push_back(std::move(n));
    }
    return r;
}

std::string cluster::open(banyan::ckpt::session_request r) const {
    std::string warnings;
    for (const auto& [node, pid] : daemons_) {
        r.self = name(node);
        const auto known = [&](const auto& list) {
            return std::any_of(list.begin(), list.end(), [&](const auto& n) { return n.name == r.self; });
        };
        if (!known(r.nodes) && !known(r.spares)) continue;
        const auto answer = banyan::ckpt::session_open(socket(node), r, 10s);
        if (!answer) FAIL(answer.error().text());
        warnings += answer->warning;
    }
    return warnings;
}

void cluster::new_step(std::uint64_t job, std::uint32_t step, const std::vector<int>& nodes) const {
    std::vector<std::string> names;
    for (const int n : nodes) names.push_back(name(n));
    for (const int n : nodes) REQUIRE(banyan::ckpt::step_open(socket(n), {job, step, names}, 5s));
}

std::string cluster::printed() const { return banyan::read_file(dir_ + "/rank.err", 1 << 20).value_or(""); }

std::size_t cluster::printed(const std::string& what) const {
    const auto text = printed();
    std::size_t n = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
}

rank_process::rank_process(const cluster& c, int node, std::uint64_t job, std::uint32_t rank,
                           std::uint32_t world, std::size_t bytes) {
    std::array<int, 2> in{}, out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)
        throw std::runtime_error("no pipe");
    const std::vector<std::string> environment{"BANYAN_JOB=" + std::to_string(job),
                                               "RANK=" + std::to_string(rank),
                                               "WORLD_SIZE=" + std::to_string(world),
                                               "BANYAN_CKPT_SOCKET=" + c.socket(node),
                                               "BANYAN_CKPT_WAIT_MS=1500",
                                               "STATE_BYTES=" + std::to_string(bytes)};
    const auto program = banyan::testing::built("ckptd_test_rank");
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(in[0], 0);
        ::dup2(out[1], 1);
        const int errors =
            ::open((c.dir() + "/rank.err").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        ::dup2(errors, 2);
        for (const auto& e : environment) ::putenv(const_cast<char*>(e.c_str()));
        ::execl(program.c_str(), program.c_str(), nullptr);
        ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = out[0];
}

rank_process::rank_process(rank_process&& o) noexcept
    : pid_(std::exchange(o.pid_, -1)), to_(std::exchange(o.to_, -1)), from_(std::exchange(o.from_, -1)) {}

rank_process::~rank_process() {
    if (pid_ > 0) kill();
    if (to_ >= 0) ::close(to_);
    if (from_ >= 0) ::close(from_);
}

void rank_process::kill() {
    stop(pid_, SIGKILL);
    pid_ = -1;
}

void rank_process::say(const std::string& command) {
    // These never rest.
    if (command.starts_with("loop") || command.starts_with("scribble")) idle_time().ignore(pid_);
    const auto line = command + "\n";
    if (::write(to_, line.data(), line.size()) < 0) return;
}

answer rank_process::hear() {
    answer out;
    char c = 0;
    for (;;) {
        pollfd p{from_, POLLIN, 0};
        if (::poll(&p, 1, std::chrono::milliseconds(no_answer_after).count()) <= 0)
            return answer("no answer");
        if (::read(from_, &c, 1) <= 0) return {};
        if (c == '\n') return out;
        out += c;
    }
}

answer rank_process::ask(const std::string& command) {
    say(command);
    return hear();
}

std::vector<rank_process> start_ranks(const cluster& c, std::uint64_t job, const std::vector<int>& nodes,
                                      int per_node, std::size_t bytes) {
    std::vector<rank_process> out;
    const auto world = static_cast<std::uint32_t>(nodes.size()) * static_cast<std::uint32_t>(per_node);
    std::uint32_t rank = 0;
    for (const int node : nodes)
        for (int k = 0; k < per_node; ++k) out.emplace_back(c, node, job, rank++, world, bytes);
    return out;
}

std::vector<answer> ask_all(std::vector<rank_process>& ranks, const std::string& command) {
    for (auto& r : ranks) r.say(command);
    std::vector<answer> out;
    for (auto& r : ranks) out.push_back(r.hear());
    return out;
}

}  // namespace ckptd_test
