// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes, and which ranks on them. Pure functions of their arguments: the same input gives the same
// output everywhere.
//
// A slot is one node's share of the ranks. Slots that a pipeline group connects form a unit; a unit should
// sit in one leaf group, so that pipeline traffic crosses no spine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/shape.hpp>

#include "common/result.hpp"

namespace banyan::topo {

struct request {
    shape dims;
    std::uint32_t nodes = 0;           ///< that run ranks, spares not counted
    std::uint32_t ranks_per_node = 0;  ///< nodes * ranks_per_node == dims.ranks()
    std::uint32_t spares = 0;
};

/// `total_nodes` includes the spares. `ranks_per_node` 0 = as many as fit evenly. An error says which number
/// does not fit and which would.
result<request> make_request(const shape& dims, std::uint32_t total_nodes, std::uint32_t ranks_per_node,
                             std::uint32_t spares);

struct placement {
    std::vector<std::uint32_t> nodes;   ///< slot -> host index
    std::vector<std::uint32_t> spares;  ///< host indices
    std::vector<std::uint32_t>
        buddies;  ///< slot -> slot that keeps the copy of its shards; itself when there is one slot only
};

/// Slot -> its ranks, ascending. Slots are ordered by their smallest rank. Depends on the request alone:
/// consecutive blocks where those keep tensor parallel groups inside a node, else regrouped so that they are.
std::vector<std::vector<std::uint32_t>> ranks_of_slots(const request& r);

/// Unit of each slot: slots with the same number share a pipeline group. Numbers are dense, in slot order.
std::vector<std::uint32_t> units_of_slots(const request& r);

/// Chooses among `free_hosts` (ascending indices into f.hosts). `prefer`: hosts to take first where no unit
/// breaks by it.
result<placement> place(const fabric& f, std::span<const std::uint32_t> free_hosts, const request& r,
                        std::span<const std::uint32_t> prefer = {});

/// Exactly these hosts (as many as r.nodes; spares are not placed), in the best order.
result<placement> arrange(const fabric& f, std::span<const std::uint32_t> hosts, const request& r);

/// Replaces `lost` nodes by some of `replacements`; every other slot keeps its node. A slot gets a host of
/// its own leaf group where there is one. Replacements that were spares stop being spares.
result<placement> swap(const fabric& f, const placement& before, std::span<const std::uint32_t> lost,
                       std::span<const std::uint32_t> replacements);

/// How a placement sits on the fabric, for people and receipts.
struct spread {
    std::vector<std::pair<std::string, std::uint32_t>>
        groups;  ///< leaf group id -> active nodes in it, largest first
    std::uint32_t units = 0;
    std::uint32_t straddling_units = 0;  ///< units with slots in more than one leaf group
};
spread spread_of(const fabric& f, const request& r, const placement& p);

}  // namespace banyan::topo
