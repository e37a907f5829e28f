// SPDX-License-Identifier: BSD-3-Clause
//
// Which ranks of a training step run on a node, as slurmctld laid the step out.
#pragma once

#include "fault/slurm/cluster.hpp"
#include "train/plan_summary.hpp"

namespace banyan::fault {

/// Of a step whose size is that of the plan's training steps. not_found: the step is another one, or has no
/// task there; unavailable: slurmctld did not tell.
result<node_ranks> ranks_in(std::uint32_t job, const step_status& step, const train::plan_summary& plan,
                            const std::string& node);

}  // namespace banyan::fault
