// SPDX-License-Identifier: BSD-3-Clause
//
// What slurmctld tells of a job's plan to programs that may not read the plan itself: srun, slurmstepd,
// banyan-run and faultd. It travels as a supplemental environment variable of the job (docs/decisions/009),
// which nobody but slurmctld writes and which a lookup of the allocation returns; so it needs no seal. Knows
// no Slurm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::train {

struct plan_summary : plan_head {
    std::uint32_t nodes = 0;          ///< that run ranks, when none is lost
    std::vector<std::string> order;   ///< slot -> node, of those that it has now; empty: unknown
    std::vector<std::string> spares;  ///< the last the first to be left out of a step; empty: none or unknown
    std::vector<std::uint32_t> buddies;  ///< slot -> slot; empty: unknown

    std::uint32_t ranks() const { return nodes * ranks_per_node; }
    /// Of a training step: the ranks, or a launcher on each node.
    std::uint32_t tasks() const { return launchers ? nodes : ranks(); }
};

constexpr std::string_view summary_variable = "BANYAN_PLAN_SUMMARY";
/// Of its value. Far below what the kernel takes as one variable of the batch script, which gets it too.
constexpr std::size_t max_summary_text = 96u << 10;

/// All that the plan says of it.
plan_summary summary_of(const plan& p);

/// One line of JSON. What does not fit into max_summary_text is left out whole: the buddies, then the order
/// and the spares.
std::string summary_text(const plan& p);
/// Checks every number: what it returns can be used without further checks.
result<plan_summary> parse_summary(std::string_view text);

/// The summary among an allocation's variables, "NAME=value"; empty when there is none, since the job was
/// placed without a plan. An error when what is there cannot be believed: it cannot be read, stands there
/// twice, or is not that of `job`, requeued `restart` times. Entries may be null.
result<std::optional<plan_summary>> summary_in(const char* const* entries, std::uint32_t count,
                                               std::uint32_t job, std::uint32_t restart);

}  // namespace banyan::train
