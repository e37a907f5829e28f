// SPDX-License-Identifier: BSD-3-Clause
//
// What a save costs the rank: its stall against a plain memcpy into warm memory, the first save against the
// later ones, and a restore from local memory against the same memcpy. One real daemon, a single node;
// interleaved, medians.
//     ckpt_bench [--json FILE] [--mib N] [--runs N]
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

#include <CLI/CLI.hpp>
#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckptd/protocol/protocol.hpp"
#include "test/bench/figures.hpp"

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

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("What a save and a restore cost a rank.");
    std::string json;
    std::size_t mib = 256, runs = 9;
    app.add_option("--json", json, "write the figures there instead of printing a table");
    app.add_option("--mib", mib, "state of the rank (default 256)")->check(CLI::Range(1, 1 << 20));
    app.add_option("--runs", runs, "of which each time is the median (default 9)")
        ->check(CLI::Range(1, 1000));
    CLI11_PARSE(app, argc, argv);
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
    banyan::bench::figures figures;
    const char* warm_copy = "memcpy into a warm buffer";
    figures.add("snapshot stall per GiB", steady / gib * 1000, "ms", "-");
    figures.add("snapshot stall ratio", steady / copy, "x", warm_copy, "<=", 1.25);
    figures.add("first save ratio", first / steady, "x", "steady save", "<=", 1.2);
    figures.add("local restore ratio", median(restores) / copy, "x", warm_copy, "<=", 1.5);
    bck_finalize(0);
    return figures.finish(json);
}
