// SPDX-License-Identifier: BSD-3-Clause
//
// From a shape to slots and units: arithmetic on ranks, nothing of the fabric.
#include <algorithm>
#include <numeric>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/placement/layout.hpp"

namespace banyan::topo {
namespace {

/// Product of the sizes of the dimensions that run before `d` in rank order: the distance of two neighbours
/// along d.
std::uint32_t stride_of(const shape& s, dimension d) {
    std::uint32_t stride = 1;
    for (const auto& e : s.order) {
        if (e.dim == d) return stride;
        stride *= e.size;
    }
    return stride;
}

/// True when blocks of `block` consecutive ranks cut no tensor parallel group, or only into whole blocks.
bool blocks_keep_tensor_groups(const shape& s, std::uint32_t block) {
    const auto size = s.size(dimension::tp);
    const auto extent =
        stride_of(s, dimension::tp) * size;  // a tp group lies within an aligned range of this length
    if (size == 1) return true;
    if (block % extent == 0) return true;
    return stride_of(s, dimension::tp) == 1 && size % block == 0;
}

/// Ranks in the order of locality: tensor parallel neighbours first, data parallel ones last.
std::vector<std::uint32_t> by_locality(const shape& s) {
    std::vector<std::uint32_t> ranks(s.ranks());
    std::iota(ranks.begin(), ranks.end(), 0u);
    const auto key = [&](std::uint32_t rank) {
        const auto at = s.coordinates(rank);
        std::uint64_t out = 0;
        for (auto d = all_dimensions.rbegin(); d != all_dimensions.rend(); ++d)
            out = out * s.size(*d) + at[static_cast<std::size_t>(*d)];
        return out;
    };
    std::sort(ranks.begin(), ranks.end(), [&](auto a, auto b) { return key(a) < key(b); });
    return ranks;
}

}  // namespace

result<request> make_request(const shape& dims, std::uint32_t total_nodes, std::uint32_t ranks_per_node,
                             std::uint32_t spares) {
    const auto ranks = dims.ranks();
    if (total_nodes <= spares)
        return fail(errc::invalid_input,
                    fmt::format("{} nodes with {} spares leave none to run on", total_nodes, spares),
                    fmt::format("ask for -N {} or more", spares + 1));
    const auto nodes = total_nodes - spares;
    if (ranks_per_node == 0 && ranks % nodes != 0)
        return fail(errc::invalid_input,
                    fmt::format("{} ({} ranks) does not divide over {} nodes", dims.text(), ranks, nodes),
                    "choose a number of nodes that divides the ranks, plus the spares");
    if (ranks_per_node == 0) ranks_per_node = ranks / nodes;
    if (std::uint64_t{nodes} * ranks_per_node != ranks) {
        const auto hint = ranks % ranks_per_node == 0
                              ? fmt::format("ask for -N {}{}", ranks / ranks_per_node + spares,
                                            spares ? " (spares included)" : "")
                              : fmt::format("{} tasks a node do not divide {} ranks", ranks_per_node, ranks);
        return fail(
            errc::invalid_input,
            fmt::format("--train-parallel={} is {} ranks, but {} nodes with {} tasks each are {}",
                        dims.text(), ranks, nodes, ranks_per_node, std::uint64_t{nodes} * ranks_per_node),
            hint);
    }
    return request{dims, nodes, ranks_per_node, spares, {}, objective::whole_units};
}

std::vector<std::vector<std::uint32_t>> ranks_of_slots(const request& r) {
    std::vector<std::uint32_t> order;
    if (blocks_keep_tensor_groups(r.dims, r.ranks_per_node)) {
        order.resize(r.dims.ranks());
        std::iota(order.begin(), order.end(), 0u);
    } else {
        order = by_locality(r.dims);
    }
    std::vector<std::vector<std::uint32_t>> slots(r.nodes);
    for (std::size_t i = 0; i < order.size(); ++i) slots[i / r.ranks_per_node].push_back(order[i]);
    for (auto& slot : slots) std::sort(slot.begin(), slot.end());
    std::sort(slots.begin(), slots.end());
    return slots;
}

job_layout::job_layout(const request& r) : ranks(ranks_of_slots(r)), slot_of_rank(r.dims.ranks()) {
    for (std::uint32_t s = 0; s < ranks.size(); ++s)
        for (const auto rank : ranks[s]) slot_of_rank[rank] = s;
    // dp runs slowest, so that what else connects units makes them neighbours.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> keyed;
    for (std::uint32_t s = 0; s < r.nodes; ++s)
        keyed.emplace_back(r.dims.coordinates(ranks[s].front())[static_cast<std::size_t>(dimension::dp)], s);
    std::sort(keyed.begin(), keyed.end());
    std::vector<std::uint32_t> sequence;
    for (const auto& [dp, s] : keyed) sequence.push_back(s);

    std::vector<std::uint32_t> sets(r.nodes);
    std::iota(sets.begin(), sets.end(), 0u);
    connect(r, {dimension::tp, dimension::pp}, sets);
    units = dense(sets, sequence);
    connect(r, {dimension::cp, dimension::ep}, sets);
    bundles = dense(sets, sequence);
}

/// Joins the sets of slots that the process groups of `dims` connect; each set is named by its smallest slot.
void job_layout::connect(const request& r, std::initializer_list<dimension> dims,
                         std::vector<std::uint32_t>& sets) const {
    const auto root = [&](std::uint32_t s) {
        while (sets[s] != s) s = sets[s] = sets[sets[s]];
        return s;
    };
    for (const auto d : dims) {
        const auto stride = stride_of(r.dims, d), size = r.dims.size(d);
        if (size < 2) continue;
        for (std::uint32_t rank = 0; rank < r.dims.ranks(); ++rank) {
            if (rank / stride % size + 1 >= size) continue;
            const auto a = root(slot_of_rank[rank]), b = root(slot_of_rank[rank + stride]);
            sets[std::max(a, b)] = std::min(a, b);
        }
    }
    for (std::uint32_t s = 0; s < sets.size(); ++s) sets[s] = root(s);
}

/// Numbers sets 0.. in the order in which `sequence` meets them.
std::vector<std::uint32_t> job_layout::dense(const std::vector<std::uint32_t>& sets,
                                             const std::vector<std::uint32_t>& sequence) {
    std::vector<std::uint32_t> number(sets.size(), none), out(sets.size());
    std::uint32_t next = 0;
    for (const auto slot : sequence) {
        auto& n = number[sets[slot]];
        if (n == none) n = next++;
        out[slot] = n;
    }
    return out;
}

std::vector<std::uint32_t> units_of_slots(const request& r) { return job_layout(r).units; }

}  // namespace banyan::topo
