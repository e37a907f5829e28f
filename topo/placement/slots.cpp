// SPDX-License-Identifier: BSD-3-Clause
//
// From a shape to slots and units: arithmetic on ranks, nothing of the fabric.
#include <algorithm>
#include <numeric>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/placement/layout.hpp"
#include "topo/placement/sends.hpp"

namespace banyan::topo {
namespace {

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

std::vector<std::uint32_t> ranks_by_slot(const request& r) {
    const auto per_node = r.ranks_per_node;
    if (blocks_keep_tensor_groups(r.dims, per_node)) {
        std::vector<std::uint32_t> out(r.dims.ranks());
        std::iota(out.begin(), out.end(), 0u);
        return out;
    }
    auto ranks = by_locality(r.dims);
    std::vector<std::span<std::uint32_t>> slots;
    for (std::uint32_t s = 0; s < r.nodes; ++s) {
        slots.push_back(std::span(ranks).subspan(std::size_t{s} * per_node, per_node));
        std::sort(slots.back().begin(), slots.back().end());
    }
    std::sort(slots.begin(), slots.end(), [](auto a, auto b) { return a.front() < b.front(); });
    std::vector<std::uint32_t> out;
    out.reserve(ranks.size());
    for (const auto slot : slots) out.insert(out.end(), slot.begin(), slot.end());
    return out;
}

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
    return request{dims, nodes, ranks_per_node, spares, std::nullopt};
}

std::vector<std::vector<std::uint32_t>> ranks_of_slots(const request& r) {
    const auto flat = ranks_by_slot(r);
    std::vector<std::vector<std::uint32_t>> out;
    for (auto at = flat.begin(); at != flat.end(); at += r.ranks_per_node)
        out.emplace_back(at, at + r.ranks_per_node);
    return out;
}

std::vector<std::uint32_t> units_of_slots(const request& r) { return job_layout(r).units().set_of_slot(); }

}  // namespace banyan::topo
