// SPDX-License-Identifier: BSD-3-Clause
//
// How long the reader and the model take, and how much memory, on rail-optimised fabrics of up to 12,800
// hosts x 8 HCAs in three levels. Each run is a process of its own, so that none profits from another's
// memory, and the peak is its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/file.hpp"
#include "test/bench/topo_bench.hpp"

namespace banyan::topo::bench {
namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
    return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// The largest resident size of this process since its exec (which getrusage does not tell: that counts the
/// parent's too).
double peak_mb() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) * 1024 / 1e6;
    return 0;
}

/// One size of fabric: its dump, and what each run gave, by name.
struct subject {
    std::uint32_t hosts = 0;
    std::string dump, snapshot;
    double size_mb = 0;
    std::map<std::string, std::vector<double>> runs;

    double operator[](const std::string& name) const { return banyan::bench::median(runs.at(name)); }
};

result<subject> prepare(std::uint32_t hosts, const std::filesystem::path& folder) {
    generate::options o;
    o.hosts = hosts;
    o.levels = 3;
    subject out;
    out.hosts = hosts;
    out.dump = (folder / fmt::format("{}.txt", hosts)).string();
    out.snapshot = (folder / fmt::format("{}.snapshot", hosts)).string();
    BANYAN_TRY(const auto made, generate::generate(o));
    BANYAN_CHECK(write_file_atomic(out.dump, made.text));
    out.size_mb = static_cast<double>(made.text.size()) / 1e6;
    return out;
}

result<void> run_once(subject& s, const std::string& self) {
    const auto one = run_program({self, "--one", s.dump, s.snapshot});
    if (one.status != 0) return fail(errc::internal, fmt::format("reading {} failed", s.dump));
    const auto times = nlohmann::json::parse(one.output);
    for (const auto& [name, value] : times.items()) s.runs[name].push_back(value);
    return {};
}

/// All sizes in turn, so that whatever else the machine does meets each of them.
result<std::vector<subject>> measure(const std::vector<std::uint32_t>& sizes, int runs,
                                     const std::filesystem::path& folder) {
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<subject> out;
    for (const auto hosts : sizes) {
        BANYAN_TRY(auto one, prepare(hosts, folder));
        out.push_back(std::move(one));
    }
    for (int i = 0; i < runs; ++i)
        for (auto& s : out) BANYAN_CHECK(run_once(s, self));
    return out;
}

void report_largest(banyan::bench::figures& figures, const subject& m) {
    const auto name = [&](const char* what) { return fmt::format("{} hosts x 8, {}", m.hosts, what); };
    figures.add(name("dump"), m.size_mb, "MB", "-");
    figures.add(name("reading"), m["read"], "s", "-");
    figures.add(name("model"), m["model"], "s", "-");
    figures.add(name("writing the snapshot"), m["save"], "s", "-");
    figures.add(name("all three"), m["all"], "s", "limit", "<=", 0.5);
    // By the processor's time, which what else the machine does leaves alone.
    figures.add(name("all three, of the processor"), m["worked"], "s", "limit", "<=", 0.5);
    figures.add(name("peak memory"), m["peak"], "MB", "limit", "<=", 600);
    figures.add(name("loading the snapshot"), m["load"] * 1000, "ms", "limit", "<=", 50);
}

}  // namespace

int measure_one(const std::string& dump_path, const std::string& snapshot) {
    const auto start = clock_type::now();
    const auto cpu = banyan::bench::thread_ms();
    auto text = read_file(dump_path, max_dump_bytes);
    if (!text) return 1;
    auto d = read_ibnetdiscover(std::move(*text));
    if (!d) return 1;
    const auto read = seconds_since(start);
    const auto f = build_fabric(*d);
    const auto modelled = seconds_since(start);
    if (!save_snapshot(f, snapshot)) return 1;
    const auto all = seconds_since(start);
    const auto worked = (banyan::bench::thread_ms() - cpu) / 1000;
    const auto peak = peak_mb();
    const auto again = clock_type::now();
    const auto loaded = load_snapshot(snapshot);
    const auto load = seconds_since(again);
    if (!loaded || loaded->hcas.size() != f.hcas.size()) return 1;
    fmt::print(R"({{"read": {}, "model": {}, "save": {}, "all": {}, "worked": {}, "load": {}, "peak": {}}})",
               read, modelled - read, all - modelled, all, worked, load, peak);
    return 0;
}

bool measure_speed(banyan::bench::figures& figures, int runs, bool quick) {
    std::string folder = (std::filesystem::temp_directory_path() / "topo_bench.XXXXXX").string();
    if (!::mkdtemp(folder.data())) {
        std::perror("topo_bench: cannot make a folder for the dumps");
        return false;
    }
    const std::vector<std::uint32_t> sizes =
        quick ? std::vector{1600u} : std::vector{1600u, 3200u, 6400u, 12800u};
    const auto all = measure(sizes, runs, folder);
    const bool commands = quick || !all || measure_commands(figures, std::min(runs, 3), folder);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (!all) {
        fmt::print(stderr, "topo_bench: {}\n", all.error().text());
        return false;
    }
    if (!commands) return false;
    std::vector<double> per_hca;
    for (const auto& s : *all) {
        per_hca.push_back(s["worked"] / (s.hosts * 8.0) * 1e6);
        figures.add(fmt::format("{} hosts x 8, processor time per HCA", s.hosts), per_hca.back(), "us", "-");
    }
    report_largest(figures, all->back());
    const auto [least, most] = std::minmax_element(per_hca.begin(), per_hca.end());
    if (!quick)
        figures.add("growth of the processor time per HCA, 1600 to 12800 hosts", *most / *least, "times",
                    "smallest", "<=", 1.3);
    return true;
}

}  // namespace banyan::topo::bench
