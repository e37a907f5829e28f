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
#include "common/fd.hpp"
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

/// Seconds of one operation over the whole state; each the median of the runs.
struct times {
    double copy = 0, first_save = 0, save = 0, restore = 0;
};

/// A job of one rank whose state is `regions` pieces of uneven sizes. Its error is bck_error's or the
/// daemon's.
banyan::result<times> measure(const daemon_process& daemon, std::uint64_t job, std::size_t bytes,
                              std::size_t regions, std::size_t runs) {
    const auto give_up = [] { return banyan::fail(banyan::errc::unavailable, bck_error()); };
    banyan::ckpt::session_request r;
    r.job = job;
    r.uid = ::geteuid();
    r.gid = ::getegid();
    r.self = "bench";
    r.world = 1;
    r.nodes = {{"bench", "127.0.0.1", {0}, 0}};
    r.bytes = bytes;
    BANYAN_TRY([[maybe_unused]] const auto opened,
               banyan::ckpt::session_open(daemon.socket, r, std::chrono::seconds(60)));

    std::vector<unsigned char> state(bytes, 7);
    void* at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) return banyan::fail(banyan::errc::exhausted, "no memory to compare with");
    const banyan::mapping warm(at, bytes);
    std::memcpy(warm.data(), state.data(), bytes);
    if (bck_init(std::to_string(job).c_str(), 0, 1) != BCK_OK) return give_up();
    const auto cut = [&](std::size_t i) { return i == regions ? bytes : i * (bytes / regions) + i * i % 97; };
    for (std::size_t i = 0; i < regions; ++i)
        if (bck_protect_bytes(fmt::format("region.{}", i).c_str(), state.data() + cut(i),
                              cut(i + 1) - cut(i)) != BCK_OK)
            return give_up();
    std::uint64_t found = 0;
    // Attaches: memory is ready from here on.
    if (bck_restart_test(&found) != BCK_E_NOTFOUND) return give_up();

    std::uint64_t step = 0;
    bool failed = false;
    const auto save = [&] { failed = bck_checkpoint(++step) != BCK_OK || failed; };
    // Quiet before every measurement: the daemon's checksum of the save before is not this save's stall.
    const auto settle = [&] { failed = bck_wait(step, BCK_MEMORY, 60'000) != BCK_OK || failed; };
    times out;
    out.first_save = seconds_of(save);
    settle();
    std::vector<double> copies, saves, restores;
    for (std::size_t i = 0; i < runs; ++i) {
        copies.push_back(seconds_of([&] { std::memcpy(warm.data(), state.data(), bytes); }));
        saves.push_back(seconds_of(save));
        settle();
        copies.push_back(seconds_of([&] { std::memcpy(warm.data(), state.data(), bytes); }));
    }
    // The first restore of a generation verifies every copy; the later ones show the transfer alone.
    int source = 0;
    for (std::size_t i = 0; i < runs; ++i)
        restores.push_back(seconds_of([&] { failed = bck_restart(&found, &source) != BCK_OK || failed; }));
    if (failed || found != step || source != BCK_FROM_LOCAL) return give_up();
    bck_finalize(1);
    out.copy = median(copies);
    out.save = median(saves);
    out.restore = median(restores);
    return out;
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
    ::setenv("BANYAN_CKPT_SOCKET", daemon.socket.c_str(), 1);
    banyan::bench::figures figures;
    const char* warm_copy = "memcpy into a warm buffer";
    std::uint64_t job = 0;
    for (const std::size_t regions : {std::size_t{1}, std::size_t{331}}) {
        const auto t = measure(daemon, ++job, bytes, regions, runs);
        if (!t) {
            std::fprintf(stderr, "ckpt_bench: %s\n", t.error().text().c_str());
            return 1;
        }
        const auto of = regions == 1 ? std::string() : fmt::format(", {} uneven regions", regions);
        const double gib = static_cast<double>(bytes) / (1u << 30);
        figures.add("snapshot stall per GiB" + of, t->save / gib * 1000, "ms", "-");
        figures.add("snapshot stall ratio" + of, t->save / t->copy, "x", warm_copy, "<=", 1.25);
        figures.add("first save ratio" + of, t->first_save / t->save, "x", "steady save", "<=", 1.2);
        figures.add("local restore ratio" + of, t->restore / t->copy, "x", warm_copy, "<=", 1.5);
    }
    return figures.finish(json);
}
