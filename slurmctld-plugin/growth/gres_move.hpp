// SPDX-License-Identifier: GPL-2.0-or-later
//
// The GRES of a job, its request and its steps when its nodes change. Arrays per node move; nothing is
// allocated or freed on a node.
#pragma once

#include <vector>

#include "slurmctld-plugin/growth/job_nodes.hpp"

namespace banyan::slurm {

/// Makes `job`, an entry of an allocation, hold what both held, and `donor`, of the same kind, nothing.
void take_over(gres_job_state_t& job, gres_job_state_t& donor, const std::vector<origin>& nodes);

/// The request repeats by node what is allocated: slurmctld counts from it when it simulates the end of the
/// job, and after a restart.
void follow_allocation(List requests, List allocation, std::uint32_t nodes);

/// The one array of a step's GRES that Slurm's gres_ctld_step_state_rebase() leaves at its old size and
/// order.
void reorder_step_counts(const job_record_t& job, const std::vector<origin>& nodes);

}  // namespace banyan::slurm
