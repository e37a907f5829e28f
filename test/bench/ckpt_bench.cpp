// SPDX-License-Identifier: BSD-3-Clause
//
// What checkpoints cost: saves, restores, the way to the buddy and to storage, the commit of a large job,
// saves beside a dead peer. Real daemons and ranks on this host; each figure against a limit or a peer that
// is measured between its own runs, medians.
//     ckpt_bench [--json FILE] [--only NAME]... [--runs N] [--small] [--dir DIR]
#include "test/bench/ckpt_bench.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace banyan::bench {

std::string size_text(std::size_t bytes) {
    return bytes % (std::size_t{1} << 30) == 0 ? fmt::format("{} GiB", bytes >> 30)
                                               : fmt::format("{} MiB", bytes >> 20);
}

result<mapping> warm_memory(std::size_t bytes) {
    void* at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) return fail_errno("no memory", errno);
    return mapping(at, bytes);
}

}  // namespace banyan::bench

int main(int argc, char** argv) {
    using namespace banyan::bench;
    const std::vector<std::pair<std::string, ckpt_subject*>> subjects{
        {"saves", measure_saves},         {"first-saves", measure_first_saves},
        {"flush", measure_flush},         {"copies", measure_copies},
        {"buddy", measure_buddy_restore}, {"checksums", measure_checksums},
        {"commit", measure_commit},       {"stall", measure_stall}};
    std::vector<std::string> names, only;
    for (const auto& [name, measure] : subjects) names.push_back(name);
    CLI::App app("What checkpoints cost.");
    std::string json;
    ckpt_plan plan;
    bool small = false;
    app.add_option("--json", json, "write the figures there instead of printing a table");
    app.add_option("--only", only, "these subjects: " + fmt::format("{}", fmt::join(names, ", ")))
        ->check(CLI::IsMember(names));
    app.add_option("--runs", plan.runs, "of which each figure is the median (default 7)")
        ->check(CLI::Range(1, 1000));
    app.add_flag("--small", small, "little states and jobs: whether it works, not how fast");
    app.add_option("--dir", plan.dir, "directory that stands for storage (default: the temporary directory)")
        ->check(CLI::ExistingDirectory);
    CLI11_PARSE(app, argc, argv);
    if (small) {
        plan.large = std::size_t{24} << 20;
        plan.small = std::size_t{8} << 20;
        plan.steps = 5;
        plan.nodes = 4;
    }
    figures out;
    bool whole = true;
    for (const auto& [name, measure] : subjects) {
        if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
        const auto start = std::chrono::steady_clock::now();
        const auto done = measure(plan, out);
        std::fprintf(stderr, "ckpt_bench: %s: %.1f s\n", name.c_str(),
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        if (done) continue;
        whole = false;
        out.failed(name, done.error().text());
        std::fprintf(stderr, "ckpt_bench: %s: %s\n", name.c_str(), done.error().text().c_str());
    }
    const int status = out.finish(json);
    return status != 0 || whole ? status : 1;
}
