// SPDX-License-Identifier: BSD-3-Clause
//
// Runs of one job, a rank a node, each on nodes of its own.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cluster.hpp"

namespace ckptd_test {

struct run {
    std::uint64_t job = 7;
    std::vector<int> nodes;
    std::uint32_t restart = 0;
    std::string storage = {};
    std::uint64_t flush = 0;
    uid_t uid = ::geteuid();
    std::vector<int> former = {};      ///< as the plan names nodes of earlier runs
    std::chrono::milliseconds gap{0};  ///< from the prologs to the step
};

/// The session on each of its nodes, then its step.
inline std::vector<rank_process> begin_run(const cluster& c, const run& l) {
    auto r = c.request(l.job, 1, 1, l.storage, l.flush);
    r.nodes.clear();
    r.spares.clear();
    r.restart = l.restart;
    r.uid = l.uid;
    r.world = static_cast<std::uint32_t>(l.nodes.size());
    std::vector<std::string> names;
    for (std::uint32_t slot = 0; slot < r.world; ++slot) {
        const auto node = l.nodes[slot];
        r.nodes.push_back({c.name(node), c.addr(node), {slot}, (slot + 1) % r.world});
        names.push_back(c.name(node));
    }
    for (const auto node : l.former) r.former.push_back({c.name(node), c.addr(node)});
    for (const auto node : l.nodes) {
        r.self = c.name(node);
        const auto opened = banyan::ckpt::session_open(c.socket(node), r, 20s);
        if (!opened) FAIL(opened.error().text());
    }
    pass(l.gap);
    for (const auto node : l.nodes) REQUIRE(banyan::ckpt::step_open(c.socket(node), {l.job, 0, names}, 5s));
    return start_ranks(c, l.job, l.nodes, 1, 100'000);
}

/// Saves the steps, each with its second copies; then its processes end, and slurmd's epilogs say so.
inline void train_and_leave(const cluster& c, const run& l, int from, int to) {
    auto ranks = begin_run(c, l);
    ask_all(ranks, "restart");
    for (int step = from; step <= to; ++step) {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 2 9000", step)), BCK_OK);
    }
    for (auto& r : ranks) r.kill();
    for (const auto node : l.nodes) REQUIRE(banyan::ckpt::session_detach(c.socket(node), l.job, 5s));
}

}  // namespace ckptd_test
