// SPDX-License-Identifier: BSD-3-Clause
//
// How long the reader and the model take, and how much memory, on rail-optimised fabrics of up to 12,800
// hosts x 8 HCAs in three levels. Each run is a process of its own, so that none profits from another's
// memory, and the peak is its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.hpp"
#include "test/bench/topo_bench.hpp"

extern char** environ;

namespace banyan::topo::bench {
namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
    return std::chrono::duration<double>(clock_type::now() - start).count();
}

struct run_result {
    bool fine = false;
    double wall_s = 0, peak_mb = 0;
    std::string output;
};

run_result run(std::vector<std::string> words) {
    run_result out;
    int ends[2];
    if (::pipe(ends) != 0) return out;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const auto start = clock_type::now();
    pid_t child = 0;
    const int spawned = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char buffer[4096];
    for (ssize_t n; spawned == 0 && (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        out.output.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    int status = 0;
    rusage used{};
    if (spawned != 0 || ::wait4(child, &status, 0, &used) != child) return out;
    out.wall_s = seconds_since(start);
    out.peak_mb = static_cast<double>(used.ru_maxrss) * 1024 / 1e6;
    out.fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return out;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

/// Medians of several runs, by name.
using medians = std::map<std::string, double>;

result<medians> measure(std::uint32_t hosts, int runs, const std::filesystem::path& folder) {
    generate::options o;
    o.hosts = hosts;
    o.levels = 3;
    const auto dump = (folder / "fabric.txt").string(), snapshot = (folder / "fabric.snapshot").string();
    {
        BANYAN_TRY(const auto made, generate::generate(o));
        BANYAN_CHECK(write_file_atomic(dump, made.text));
    }
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    std::map<std::string, std::vector<double>> all;
    for (int i = 0; i < runs; ++i) {
        const auto counted = run({"wc", "-l", dump});
        const auto one = run({self, "--one", dump, snapshot});
        if (!counted.fine || !one.fine)
            return fail(errc::internal,
                        fmt::format("{} of {} failed", counted.fine ? "reading" : "wc -l", dump));
        all["wc"].push_back(counted.wall_s);
        all["peak"].push_back(one.peak_mb);
        const auto times = nlohmann::json::parse(one.output);
        for (const auto& [name, value] : times.items()) all[name].push_back(value);
    }
    medians out;
    for (auto& [name, values] : all) out[name] = median(std::move(values));
    out["size"] = static_cast<double>(std::filesystem::file_size(dump)) / 1e6;
    return out;
}

void report_largest(nlohmann::json& figures, const std::string& fabric, medians m) {
    const auto add = [&](const char* what, double value, const char* unit, const char* against,
                         const char* sign = "", double goal = 0) {
        add_figure(figures, fabric + what, value, unit, against, sign, goal);
    };
    add(", dump", m["size"], "MB", "-");
    add(", reading", m["read"], "s", "-");
    add(", model", m["model"], "s", "-");
    add(", writing the snapshot", m["save"], "s", "-");
    add(", all three", m["all"], "s", "limit", "<=", 0.5);
    add(", all three", m["all"] / m["wc"], "times", "wc -l", "<=", 15);
    add(", peak memory", m["peak"], "MB", "limit", "<=", 600);
    add(", loading the snapshot", m["load"] * 1000, "ms", "limit", "<=", 50);
}

}  // namespace

int measure_one(const std::string& dump_path, const std::string& snapshot) {
    const auto start = clock_type::now();
    auto text = read_file(dump_path, max_dump_bytes);
    if (!text) return 1;
    auto d = read_ibnetdiscover(std::move(*text));
    if (!d) return 1;
    const auto read = seconds_since(start);
    const auto f = build_fabric(*d);
    const auto modelled = seconds_since(start);
    if (!save_snapshot(f, snapshot)) return 1;
    const auto all = seconds_since(start);
    const auto again = clock_type::now();
    const auto loaded = load_snapshot(snapshot);
    const auto load = seconds_since(again);
    if (!loaded || loaded->hcas.size() != f.hcas.size()) return 1;
    fmt::print("{{\"read\": {}, \"model\": {}, \"save\": {}, \"all\": {}, \"load\": {}}}\n", read,
               modelled - read, all - modelled, all, load);
    return 0;
}

bool measure_speed(nlohmann::json& figures, int runs, bool quick) {
    std::string folder = (std::filesystem::temp_directory_path() / "topo_bench.XXXXXX").string();
    if (!::mkdtemp(folder.data())) {
        std::perror("topo_bench: cannot make a folder for the dumps");
        return false;
    }
    std::vector<double> per_hca;
    bool fine = true;
    for (const std::uint32_t hosts : {1600u, 3200u, 6400u, 12800u}) {
        if (quick && hosts > 1600) break;
        const auto m = measure(hosts, runs, folder);
        if (!m) {
            fmt::print(stderr, "topo_bench: {}\n", m.error().text());
            fine = false;
            break;
        }
        per_hca.push_back(m->at("all") / (hosts * 8.0) * 1e6);
        add_figure(figures, fmt::format("{} hosts x 8, time per HCA", hosts), per_hca.back(), "us", "-");
        if (hosts == 12800 || quick) report_largest(figures, fmt::format("{} hosts x 8", hosts), *m);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (per_hca.size() > 1) {
        const auto [least, most] = std::minmax_element(per_hca.begin(), per_hca.end());
        add_figure(figures, "growth of the time per HCA, 1600 to 12800 hosts", *most / *least, "times",
                   "smallest", "<=", 1.3);
    }
    return fine;
}

}  // namespace banyan::topo::bench
