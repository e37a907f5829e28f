// SPDX-License-Identifier: BSD-3-Clause
//
// A placement as text: the plan that travels with a job (names and addresses instead of indices), and the one
// line that people read in its AdminComment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"

namespace banyan::topo {

struct plan {
    std::uint32_t job = 0;         ///< whose plan it is
    std::uint32_t generation = 0;  ///< grows with every change of the assignment
    std::uint32_t restart = 0;     ///< how often the job had been requeued when this was planned
    std::string shape;             ///< as shape::text()
    std::uint32_t ranks_per_node = 0;
    std::vector<std::string> nodes;        ///< slot -> node name
    std::vector<std::string> addrs;        ///< slot -> address; empty = the names are the addresses
    std::vector<std::string> spares;       ///< node names
    std::vector<std::string> spare_addrs;  ///< as addrs
    std::vector<std::uint32_t> buddies;    ///< slot -> slot
};

constexpr std::size_t max_plan_text = 4u << 20;
constexpr std::size_t max_plan_nodes = 65'536;
constexpr std::uint32_t plan_version = 2;

/// One line of JSON without a newline: names and addresses as host lists, buddies as runs of the distance
/// from the slot, its own version as "version".
std::string to_text(const plan& p);
/// Checks every size and index: what it returns can be used without further checks. The text may come from
/// anywhere.
result<plan> parse_plan(std::string_view text);

/// What a job would have gained by a later start.
struct better_later {
    std::uint32_t minutes = 0;
    std::uint32_t per_cent = 0;  ///< less weighted bytes (placement_cost)
};

/// "banyan: tp=2,pp=2,dp=4 nodes=8 ranks=16 spares=1(n09) groups=g1:8 straddling-pp=0/4". The last word is
/// straddling-tp where nodes share tensor parallel groups and no pipeline, and absent where none shares
/// either; " tasks=8" follows the ranks of a job that starts launchers, " model=..." when the request has
/// one, and " waiting=60m:-45%" when `later` is given.
std::string admin_comment(const request& r, const spread& s, const std::vector<std::string>& spare_names,
                          const std::optional<better_later>& later = {});

/// The line with other spares.
std::string with_spares(std::string_view line, const std::vector<std::string>& spares);

struct admin_summary {
    std::string shape;
    std::uint32_t nodes = 0;  ///< that run ranks
    std::uint32_t ranks = 0;
    std::uint32_t tasks = 0;  ///< of a training step: the ranks, or a launcher on each node
    std::vector<std::string> spares;
    std::optional<model_size> model;
    std::optional<better_later> later;
};
/// Reads the line back. not_found when the text is not one of ours.
result<admin_summary> parse_admin_comment(std::string_view text);

}  // namespace banyan::topo
