// SPDX-License-Identifier: BSD-3-Clause
//
// Placement for the fewest bytes above the leaf: other layouts beside the one that keeps units whole, and the
// choice between them by what they send.
#pragma once

#include <optional>

#include "topo/placement/layout.hpp"
#include "topo/placement/pools.hpp"

namespace banyan::topo {

/// Two slots that send to each other, and how much in a step.
struct slot_edge {
    std::uint32_t a = 0, b = 0;
    double bytes = 0;
};

/// Counted on the first rank of each slot: the others do the same on other rails.
std::vector<slot_edge> edges_of(const request& r, const job_layout& layout);

/// Bytes above the leaf, those over the core twice and those between islands as `wan_share` times as many.
double bytes_above_leaf(const fabric& f, const std::vector<slot_edge>& edges,
                        const std::vector<std::uint32_t>& nodes);

/// Layouts that fill leaf groups to the last host: pipelines side by side, or stages side by side, on the
/// fewest groups for the nodes, or for whole rings of data parallel peers. Nodes by slot; no spares.
std::vector<std::vector<std::uint32_t>> dense_layouts(const fabric& f, const candidates& from,
                                                      const request& r);

}  // namespace banyan::topo
