// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes, and which ranks on them. Pure functions of their arguments: the same input gives the same
// output everywhere.
//
// A slot is one node's share of the ranks. Slots that a pipeline group connects form a unit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/shape.hpp>
#include <banyan/topo/work.hpp>

#include "common/result.hpp"

namespace banyan::topo {

/// How context parallel ranks share attention: keys and values passed round (ring attention), or each rank
/// all tokens of some heads (DeepSpeed-Ulysses).
enum class cp_scheme : std::uint8_t { ring, all_to_all };

/// What the traffic of a job follows from. The default is a dense model of about 70 billion parameters.
struct model_size {
    std::uint32_t hidden = 8192;
    std::uint32_t layers = 80;
    std::uint32_t sequence = 8192;  ///< tokens
    std::uint32_t micro = 16;       ///< sequences that go through one pipeline in a step
    cp_scheme cp = cp_scheme::ring;
};

struct request {
    shape dims;
    std::uint32_t nodes = 0;           ///< that run ranks, spares not counted
    std::uint32_t ranks_per_node = 0;  ///< nodes * ranks_per_node == dims.ranks()
    std::uint32_t spares = 0;
    std::optional<model_size> model;  ///< whose bytes decide; without it, those of usual_models
    bool launchers = false;           ///< one task a node starts its ranks, as torchrun does

    /// Of a training step, and of each of its nodes.
    std::uint32_t tasks() const { return launchers ? nodes : dims.ranks(); }
    std::uint32_t tasks_per_node() const { return launchers ? 1 : ranks_per_node; }
};

/// More than any node has CPUs. slurmctld refuses more than the largest of its nodes has, at submission.
constexpr std::uint32_t max_ranks_per_node = 1024;

/// `total_nodes` includes the spares. `ranks_per_node` 0 = as many as fit evenly, max_ranks_per_node at most.
/// An error says which number does not fit and which would.
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

/// Whether every slot has the ranks from slot * ranks_per_node on, as launchers number them. Cost: O(slots).
bool ranks_are_consecutive(const request& r);

/// Unit of each slot: slots with the same number share a pipeline or tensor group. Numbers are dense; units
/// that other dimensions than dp connect have neighbouring numbers, and dp runs slowest.
std::vector<std::uint32_t> units_of_slots(const request& r);

/// The hosts to choose from.
struct candidates {
    std::span<const std::uint32_t> free;    ///< ascending indices into fabric::hosts
    std::span<const std::uint32_t> prefer;  ///< to take first where no unit breaks by it: shards are there
    /// By host, 0 (sound) to 1 (about to fail); empty = all sound. Hosts that lack rails or have a slow
    /// one count as risky too, and a little so those below an unsound link.
    std::span<const float> risk;
    /// By host: those with different numbers are unlike in what the fabric does not show (GPUs); of hosts
    /// that are equal otherwise the lower number is the better one. Empty = all alike.
    std::span<const std::uint32_t> kind = {};
};

/// On equal hosts, the best that are enough: as many rails, as fast, and of one candidates::kind; where none
/// are, on the best kinds together. Risky hosts only where others do not suffice. On one island if one holds
/// the job, else on islands that WAN links join. Of the assignments that are looked at the one with the
/// fewest weighted bytes (weights_of, fabric::tier_cost); among them are the nodes in name order and those
/// that Slurm's topology/tree and topology/block would take.
///
/// Cost: O(hosts + nodes log nodes), and of `limit` at most most_work_of_placement, which it takes off; with
/// few left what it finds may be a dearer placement, never none. Ranks cost nothing, neither time nor memory.
result<placement> place(const fabric& f, const candidates& from, const request& r, work& limit);
inline result<placement> place(const fabric& f, const candidates& from, const request& r) {
    work limit(most_work_of_placement);
    return place(f, from, r, limit);
}
inline result<placement> place(const fabric& f, std::span<const std::uint32_t> free, const request& r,
                               std::span<const std::uint32_t> prefer = {}) {
    return place(f, candidates{free, prefer, {}}, r);
}

/// Exactly these hosts (as many as r.nodes; spares are not placed), in the best order.
result<placement> arrange(const fabric& f, std::span<const std::uint32_t> hosts, const request& r);

/// Replaces `lost` nodes by some of `replacements`; every other slot keeps its node. A slot gets a host of
/// its own leaf group where there is one, and never one that nothing joins with its node. Replacements that
/// were spares stop being spares. Cost: O(nodes log nodes).
result<placement> swap(const fabric& f, const placement& before, std::span<const std::uint32_t> lost,
                       std::span<const std::uint32_t> replacements);

/// The swap that leaves `before` on nothing but `hosts`: the nodes that are not among them are lost, and
/// those of them that run no ranks yet replace them, in their order. Indices that the fabric does not have
/// are far from everything, so that it does with no fabric at all. Spares that are not among `hosts` stay
/// spares.
result<placement> swap_onto(const fabric& f, const placement& before, std::span<const std::uint32_t> hosts);

/// How a placement sits on the fabric, for people.
struct spread {
    std::vector<std::pair<std::string, std::uint32_t>>
        groups;  ///< leaf group id -> active nodes in it, largest first
    std::uint32_t units = 0;
    std::uint32_t straddling_units = 0;  ///< units with slots in more than one leaf group
    /// Names of the nodes, spares included, that are of another kind than most.
    std::vector<std::string> unlike;
    std::int64_t fabric_unix_s = 0;  ///< when the fabric was looked at; 0 = not told
};
/// `kind`: as candidates::kind.
spread spread_of(const fabric& f, const request& r, const placement& p,
                 std::span<const std::uint32_t> kind = {});

}  // namespace banyan::topo
