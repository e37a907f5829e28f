// SPDX-License-Identifier: BSD-3-Clause
//
// What placement adds to a job_test: the time of topo::place on fabrics of 128 to 12,800 hosts, 0 to 95 %
// occupied, jobs of 1 to 4,096 nodes; and of the worst requests that can be put (placement_worst.cpp).
// Prints a table, or with --json FILE the list of figures.
#include <algorithm>
#include <optional>
#include <random>

#include <CLI/CLI.hpp>
#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "test/bench/figures.hpp"
#include "test/bench/placement_worst.hpp"

namespace {

using namespace banyan::topo;
constexpr std::uint32_t hosts_per_group = 32;

fabric make_fabric(std::uint32_t hosts) {
    fabric f;
    for (std::uint32_t h = 0; h < hosts; ++h) {
        if (h % hosts_per_group == 0) {
            f.leaf_groups.emplace_back();
            f.leaf_groups.back().id = fmt::format("g{}", f.leaf_groups.size());
            f.leaf_groups.back().spine_group = static_cast<std::uint32_t>(f.leaf_groups.size() / 16);
        }
        f.hosts.emplace_back();
        f.hosts.back().name = fmt::format("n{:05}", h);
        f.hosts.back().leaf_group = static_cast<std::uint32_t>(f.leaf_groups.size() - 1);
        f.leaf_groups.back().hosts.push_back(h);
    }
    return f;
}

/// Milliseconds of each call, sorted.
std::vector<double> measure(std::uint32_t hosts, std::optional<model_size> model) {
    const auto f = make_fabric(hosts);
    std::mt19937 random(1);
    std::vector<double> times;
    for (const double occupied : {0.0, 0.3, 0.6, 0.8, 0.95})
        for (std::uint32_t nodes = 1; nodes <= 4096; nodes *= 4) {
            const auto pp = std::min(nodes, 4u);
            auto r = make_request(parse_shape(fmt::format("tp=8,pp={},dp={}", pp, nodes / pp)).value(),
                                  nodes + 1, 8, 1);
            r->model = model;
            for (int repeat = 0; repeat < 20; ++repeat) {
                std::vector<std::uint32_t> free;
                for (std::uint32_t h = 0; h < hosts; ++h)
                    if (std::uniform_real_distribution<double>(0, 1)(random) >= occupied) free.push_back(h);
                if (free.size() < nodes + 1) continue;
                const auto start = banyan::bench::thread_ms();
                const auto placed = place(f, free, *r);
                const auto took = banyan::bench::thread_ms() - start;
                if (!placed) std::abort();
                times.push_back(took);
            }
        }
    std::sort(times.begin(), times.end());
    return times;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("What choosing the nodes of one job costs.");
    std::string json;
    app.add_option("--json", json, "write the figures there instead of printing a table");
    int requests = 100'000;
    app.add_option("--requests", requests, "of the worst that can be put")
        ->capture_default_str()
        ->check(CLI::Range(1, 10'000'000));
    CLI11_PARSE(app, argc, argv);
    banyan::bench::figures figures;
    for (const std::uint32_t hosts : {128u, 1024u, 12800u}) {
        for (const bool model : {false, true}) {
            const auto times = measure(hosts, model ? std::optional(model_size{}) : std::nullopt);
            const auto at = [&](double share) {
                return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
            };
            const auto name = fmt::format("one job, {} hosts{}", hosts, model ? ", --train-model" : "");
            figures.add(name + ", p50", at(0.5), "ms", "-");
            figures.add(name + ", p99", at(0.99), "ms", "limit", "<=", hosts > 1024 ? 3.0 : 0.5);
        }
    }
    banyan::bench::measure_worst(figures, requests);
    return figures.finish(json);
}
