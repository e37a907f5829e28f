// SPDX-License-Identifier: BSD-3-Clause
#include "test/bench/placement_quality_outcome.hpp"

#include <algorithm>
#include <cmath>

namespace banyan::topo::quality {
namespace {

std::vector<std::uint32_t> node_of_ranks(const request& r) {
    std::vector<std::uint32_t> out(r.dims.ranks());
    const auto slots = ranks_of_slots(r);
    for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
        for (const auto rank : slots[slot]) out[rank] = slot;
    return out;
}

/// As Slurm numbers them.
std::vector<std::uint32_t> in_order(const request& r) {
    std::vector<std::uint32_t> out(r.dims.ranks());
    for (std::uint32_t rank = 0; rank < out.size(); ++rank) out[rank] = rank / r.ranks_per_node;
    return out;
}

}  // namespace

void peer::add(const by_model& s) {
    total = there ? std::min(total, sum(s)) : sum(s);
    for (std::size_t m = 0; m < s.size(); ++m) sent[m] = there ? std::min(sent[m], s[m]) : s[m];
    there = true;
}

double outcome::best(std::size_t model) const {
    double out = INFINITY;
    for (const auto& p : peers)
        if (p.there) out = std::min(out, p.sent[model]);
    return out;
}

double outcome::best_sum() const {
    double out = INFINITY;
    for (const auto& p : peers)
        if (p.there) out = std::min(out, p.total);
    return out;
}

evaluation::evaluation(const site& s, const test_case& c)
    : s_(s), c_(c), by_slot_(c.job.dims, node_of_ranks(c.job)), by_node_(c.job.dims, in_order(c.job)) {}

outcome evaluation::outcome_beside(const std::optional<hosts>& from_tree,
                                   const std::optional<hosts>& from_block) const {
    const auto count = c_.job.nodes;
    outcome out;
    out.c = &c_;
    std::vector<hosts> segments;
    if (from_block) segments.push_back(*from_block);
    for (std::uint32_t size = 2; size <= std::min(s_.group_size, count); ++size)
        for (const bool largest_first : {false, true})
            if (count % size == 0)
                segments.push_back(block_emulated(s_, c_.free, count, size, largest_first));
    out.peers = {peer_on("name order", {{c_.free.begin(), c_.free.begin() + count}}),
                 peer_on("tree", {from_tree ? *from_tree : tree_emulated(s_, c_.free, count)}),
                 peer_on("block, best segment", segments),
                 peer_on("random", {random_nodes(c_.free, count, c_.seed)})};
    for (std::size_t m = 0; m < models.size(); ++m) out.given[m] = placed(&models[m])[m];
    out.without = placed(nullptr);
    return out;
}

void evaluation::prove(const oracle_limits& limits, bool solve, outcome& out) const {
    const auto grid = grid_of(c_.job, by_slot_);
    if (!grid) return;
    for (std::size_t m = 0; m < models.size(); ++m) {
        out.counted[m] = counted_bound(s_, c_, *grid, grid->ring[m], grid->cut[m]);
        if (solve) out.bound[m] = oracle_bound(s_, c_, *grid, grid->ring[m], grid->cut[m], limits);
    }
}

peer evaluation::peer_on(const char* name, const std::vector<hosts>& variants) const {
    peer out;
    out.name = name;
    for (const auto& nodes : variants)
        if (!nodes.empty()) out.add(by_node_.weighted(s_.net, nodes));
    return out;
}

by_model evaluation::placed(const known_model* m) const {
    auto r = c_.job;
    if (m)
        r.model =
            model_size{static_cast<std::uint32_t>(m->hidden), static_cast<std::uint32_t>(m->layers),
                       static_cast<std::uint32_t>(m->sequence), static_cast<std::uint32_t>(m->sequences)};
    return by_slot_.weighted(s_.net, place(s_.net, c_.free, r).value().nodes);
}

}  // namespace banyan::topo::quality
