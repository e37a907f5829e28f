// SPDX-License-Identifier: BSD-3-Clause
//
// A placement as text: the plan that travels with a job, with names and addresses instead of indices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"

namespace banyan::train {

/// What a job would have gained by a later start.
struct better_later {
    std::uint32_t minutes = 0;
    std::uint32_t per_cent = 0;  ///< less weighted bytes (placement_cost)
};

/// What a plan and its summary both say.
struct plan_head {
    std::uint32_t job = 0;         ///< whose plan it is
    std::uint32_t generation = 0;  ///< grows with every change of the assignment
    std::uint32_t restart = 0;     ///< how often the job had been requeued when this was planned
    std::string shape;             ///< as shape::text()
    std::uint32_t ranks_per_node = 0;
    bool launchers = false;  ///< a step has one task a node, which starts the node's ranks
    /// That may run the ranks of fewer data parallel groups, once others are lost; 0 = all that the shape
    /// needs.
    std::uint32_t min_nodes = 0;
    /// banyan-run started the training step that lost a node last, and starts the next one. Without it nobody
    /// does.
    bool supervised = false;
};

struct plan : plan_head {
    /// slot -> node name; of a job that goes on with fewer nodes only the first slots have one
    std::vector<std::string> nodes;
    std::vector<std::string> addrs;        ///< slot -> address; empty = the names are the addresses
    std::vector<std::string> spares;       ///< node names
    std::vector<std::string> spare_addrs;  ///< as addrs
    /// Nodes of the job's earlier runs, whatever they are now, the newest first: what it has to begin from
    /// may be in their memory alone. At most max_former_runs times as many as the plan has.
    std::vector<std::string> former;
    std::vector<std::string> former_addrs;  ///< as addrs
    std::vector<std::uint32_t> buddies;     ///< slot -> slot, of all that the shape has
    std::optional<topo::model_size> model;
    std::optional<better_later> later;  ///< than it started
    std::string spread;  ///< how it sits on the fabric, in words for people (spread_in_words); may be empty
};

constexpr std::size_t max_plan_text = 4u << 20;
constexpr std::size_t max_plan_nodes = 65'536;
constexpr std::size_t max_former_runs = 2;
constexpr std::uint32_t plan_version = 3;
/// Of a plan with min_nodes. Others are still of the version before, which any daemon reads.
constexpr std::uint32_t elastic_plan_version = 4;

/// One line of JSON without a newline: names and addresses as host lists, buddies as runs of the distance
/// from the slot, its own version as "version".
std::string to_text(const plan& p);
/// Checks every size and index: what it returns can be used without further checks. The text may come from
/// anywhere.
result<plan> parse_plan(std::string_view text);

/// `next` follows `before`, a plan of the same run of the job or of an earlier one: its `former`.
std::vector<std::string> former_after(const plan& before, const plan& next);

}  // namespace banyan::train
