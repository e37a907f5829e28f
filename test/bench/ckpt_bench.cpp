// SPDX-License-Identifier: BSD-3-Clause
//
// What a save costs the rank: its stall against a plain memcpy into warm memory, the first save against the
// later ones, and a restore from local memory against the same memcpy. One real daemon, a single node;
// interleaved, medians.
//     ckpt_bench [--json] [--mib N] [--runs N]
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckptd/protocol/protocol.hpp"

namespace {

namespace fs = std::filesystem;
using clock_type = std::chrono::steady_clock;

struct daemon_process {
    fs::path dir;
    pid_t pid = -1;
    std::string socket;

    daemon_process() {
        std::string pattern = (fs::temp_directory_path() / "banyan-bench-XXXXXX").string();
        dir = ::mkdtemp(pattern.data());
        socket = dir / "ckptd.sock";
        // A port of its own: a cluster may run on this host.
        const int port = 20000 + ::getpid() % 20000;
        std::ofstream(dir / "banyan.conf")
            << fmt::format("[ckptd]\nsocket = \"{}\"\nport = {}\nlog_level = \"warn\"\n", socket, port);
        const auto config = (dir / "banyan.conf").string();
        pid = ::fork();
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::execl(BANYAN_CKPTD, BANYAN_CKPTD, "--config", config.c_str(), "--node", "bench", "--bind",
                    "127.0.0.1", nullptr);
            ::_exit(127);
        }
        for (int i = 0; i < 500 && !banyan::ckpt::status(socket, std::chrono::seconds(1)); ++i)
            ::usleep(10'000);
    }
    ~daemon_process() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        std::error_code ignored;
        fs::remove_all(dir, ignored);
    }
};

double seconds_of(const auto& work) {
    const auto start = clock_type::now();
    work();
    return std::chrono::duration<double>(clock_type::now() - start).count();
}

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

int give_up(const std::string& what) {
    std::fprintf(stderr, "ckpt_bench: %s\n", what.c_str());
    return 1;
}

nlohmann::ordered_json figure(const char* name, double value, const char* unit, const char* against,
                              const char* goal, bool holds) {
    return {{"figure", name},     {"value", value}, {"unit", unit},
            {"against", against}, {"goal", goal},   {"holds", holds}};
}

void print(const nlohmann::ordered_json& figures, bool as_json) {
    if (as_json) {
        std::puts(figures.dump(1).c_str());
        return;
    }
    for (const auto& f : figures)
        fmt::print("{:<44} {:>9.3f} {:<6} {:<40} goal {:<8} {}\n", f["figure"].get<std::string>(),
                   f["value"].get<double>(), f["unit"].get<std::string>(),
                   "against " + f["against"].get<std::string>(), f["goal"].get<std::string>(),
                   f["holds"].get<bool>() ? "holds" : "MISSED");
}

}  // namespace

int main(int argc, char** argv) {
    bool as_json = false;
    std::size_t mib = 256;
    std::size_t runs = 9;
    for (int i = 1; i < argc; ++i) {
        const std::string a = argv[i];
        if (a == "--json")
            as_json = true;
        else if (a == "--mib" && i + 1 < argc)
            mib = std::strtoull(argv[++i], nullptr, 10);
        else if (a == "--runs" && i + 1 < argc)
            runs = std::strtoull(argv[++i], nullptr, 10);
        else
            return give_up("usage: ckpt_bench [--json] [--mib N] [--runs N]");
    }
    if (mib == 0 || runs == 0) return give_up("--mib and --runs want a number above 0");
    const std::size_t bytes = mib << 20;
    const daemon_process daemon;
    banyan::ckpt::session_request r;
    r.job = 1;
    r.uid = ::geteuid();
    r.gid = ::getegid();
    r.self = "bench";
    r.world = 1;
    r.nodes = {{"bench", "127.0.0.1", {0}, 0}};
    r.bytes = bytes;
    if (auto opened = banyan::ckpt::session_open(daemon.socket, r, std::chrono::seconds(60)); !opened)
        return give_up(opened.error().text());

    std::vector<unsigned char> state(bytes, 7);
    void* warm =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (warm == MAP_FAILED) return give_up("no memory for the comparison");
    std::memcpy(warm, state.data(), bytes);
    ::setenv("BANYAN_CKPT_SOCKET", daemon.socket.c_str(), 1);
    if (bck_init("1", 0, 1) != BCK_OK || bck_protect_bytes("state", state.data(), bytes) != BCK_OK)
        return give_up(bck_error());
    std::uint64_t found = 0;
    if (bck_restart_test(&found) != BCK_E_NOTFOUND)
        return give_up(bck_error());  // attaches: memory is ready from here on

    std::uint64_t step = 0;
    bool failed = false;
    const auto save = [&] { failed = bck_checkpoint(++step) != BCK_OK || failed; };
    // Quiet before every measurement: the daemon's checksum of the save before is not this save's stall.
    const auto settle = [&] { failed = bck_wait(step, BCK_MEMORY, 60'000) != BCK_OK || failed; };
    const double first = seconds_of(save);
    settle();
    std::vector<double> copies, saves, restores;
    for (std::size_t i = 0; i < runs; ++i) {
        copies.push_back(seconds_of([&] { std::memcpy(warm, state.data(), bytes); }));
        saves.push_back(seconds_of(save));
        settle();
        copies.push_back(seconds_of([&] { std::memcpy(warm, state.data(), bytes); }));
    }
    // The first restore of a generation verifies every copy; the later ones show the transfer alone.
    int source = 0;
    for (std::size_t i = 0; i < runs; ++i)
        restores.push_back(seconds_of([&] { failed = bck_restart(&found, &source) != BCK_OK || failed; }));
    if (failed || found != step || source != BCK_FROM_LOCAL)
        return give_up(std::string("a call failed: ") + bck_error());

    const double copy = median(copies), steady = median(saves), gib = static_cast<double>(bytes) / (1u << 30);
    auto figures = nlohmann::ordered_json::array();
    figures.push_back(figure("snapshot stall per GiB", steady / gib * 1000, "ms", "-", "-", true));
    figures.push_back(figure("snapshot stall ratio", steady / copy, "x", "memcpy into a warm buffer",
                             "<= 1.25", steady / copy <= 1.25));
    figures.push_back(
        figure("first save ratio", first / steady, "x", "steady save", "<= 1.2", first / steady <= 1.2));
    figures.push_back(figure("local restore ratio", median(restores) / copy, "x", "memcpy into a warm buffer",
                             "<= 1.5", median(restores) / copy <= 1.5));
    bck_finalize(0);
    print(figures, as_json);
    return 0;
}
