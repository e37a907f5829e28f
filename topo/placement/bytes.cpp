// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/bytes.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <banyan/topo/traffic.hpp>

namespace banyan::topo {
namespace {

/// A line between sites has a few hundredths of a fabric's bandwidth.
constexpr double wan_share = 64;

/// Slots by one dimension, then the other, then number.
std::vector<std::uint32_t> sequence_by(const request& r, const std::vector<std::vector<std::uint32_t>>& ranks,
                                       dimension slow, dimension fast) {
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> keyed;
    for (std::uint32_t slot = 0; slot < r.nodes; ++slot) {
        const auto at = r.dims.coordinates(ranks[slot].front());
        keyed.emplace_back(at[static_cast<std::size_t>(slow)], at[static_cast<std::size_t>(fast)], slot);
    }
    std::sort(keyed.begin(), keyed.end());
    std::vector<std::uint32_t> out;
    for (const auto& [a, b, slot] : keyed) out.push_back(slot);
    return out;
}

/// Hands out `pools` in their order, first what each gives in whole pieces and then what is left.
std::vector<std::uint32_t> lay_out(std::vector<pool> pools, const std::vector<std::uint32_t>& sequence,
                                   std::uint32_t piece, bool whole) {
    std::vector<std::uint32_t> nodes(sequence.size(), none);
    std::size_t next = 0;
    for (auto& p : pools) {
        auto give = whole ? std::size_t{p.pieces} * piece : p.left();
        for (; give > 0 && next < sequence.size(); --give) nodes[sequence[next++]] = p.take();
    }
    for (auto& p : pools)
        while (p.left() > 0 && next < sequence.size()) nodes[sequence[next++]] = p.take();
    return next == sequence.size() ? nodes : std::vector<std::uint32_t>{};
}

}  // namespace

std::vector<slot_edge> edges_of(const request& r, const job_layout& layout) {
    const auto bytes = traffic_of(r.dims, r.model);
    std::vector<slot_edge> out;
    std::uint32_t stride = 1;
    for (const auto& e : r.dims.order) {
        const auto each = bytes[static_cast<std::size_t>(e.dim)];
        for (std::uint32_t slot = 0; slot < r.nodes && e.size > 1; ++slot) {
            const auto rank = layout.ranks[slot].front();
            const auto at = rank / stride % e.size;
            const auto first = rank - at * stride;
            const auto to = [&](std::uint32_t member, double share) {
                const auto other = layout.slot_of_rank[first + member * stride];
                if (other != slot) out.push_back({slot, other, each * share});
            };
            if (e.dim == dimension::ep) {
                for (std::uint32_t m = 0; m < e.size; ++m) to(m, 1);
            } else if (e.dim == dimension::pp) {
                if (at + 1 < e.size) to(at + 1, 2);
            } else {
                to((at + 1) % e.size, 1);
            }
        }
        stride *= e.size;
    }
    return out;
}

double bytes_above_leaf(const fabric& f, const std::vector<slot_edge>& edges,
                        const std::vector<std::uint32_t>& nodes) {
    double sum = 0;
    for (const auto& e : edges) switch (tier_between(f, nodes[e.a], nodes[e.b])) {
            case tier::host:
            case tier::leaf:
                break;
            case tier::spine:
                sum += e.bytes;
                break;
            case tier::core:
                sum += 2 * e.bytes;
                break;
            case tier::wan:
                sum += wan_share * e.bytes;
                break;
        }
    return sum;
}

std::vector<std::vector<std::uint32_t>> dense_layouts(const fabric& f, const candidates& from,
                                                      const request& r) {
    const auto ranks = ranks_of_slots(r);
    const auto by_pipeline = sequence_by(r, ranks, dimension::dp, dimension::pp);
    const auto by_stage = sequence_by(r, ranks, dimension::pp, dimension::dp);
    const auto fresh = make_pools(f, from);
    std::vector<std::vector<std::uint32_t>> out;
    const auto add = [&](std::uint32_t piece) {
        auto pools = fresh;
        share_out(pools, r.nodes / piece, piece, r.spares);
        // A stage that begins in one group and ends in the next cuts fewer pipelines in some orders than in
        // others; which, only counting tells.
        for (const int size_first : {-1, 0, 1}) {
            const auto key = [&](const pool& p) {
                return std::tuple(p.pieces == 0, p.island, p.spine_group,
                                  size_first * static_cast<std::int64_t>(p.left()));
            };
            std::stable_sort(pools.begin(), pools.end(),
                             [&](const pool& a, const pool& b) { return key(a) < key(b); });
            for (const auto* sequence : {&by_pipeline, &by_stage})
                for (const bool whole : {true, false}) out.push_back(lay_out(pools, *sequence, piece, whole));
        }
    };
    add(1);
    const auto ring = r.dims.size(dimension::dp);
    if (ring > 1 && r.nodes % ring == 0) add(ring);
    const auto line = r.dims.size(dimension::pp);
    if (line > 1 && r.nodes % line == 0) add(line);
    std::erase_if(out, [](const auto& nodes) { return nodes.empty(); });
    return out;
}

}  // namespace banyan::topo
