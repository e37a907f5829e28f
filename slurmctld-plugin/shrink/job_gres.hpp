// SPDX-License-Identifier: GPL-2.0-or-later
//
// The GRES of a job, of its request and of its steps, when a node leaves the job. Slurm keeps what it knows
// of a job's nodes in arrays in the order of the node table, so a node that leaves moves those behind it.
// Nothing is allocated or freed on a node here.
#pragma once

#include <cstddef>
#include <vector>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// The job's GRES can be followed node by node: each kind is counted by node, and is asked for in one way.
bool is_counted_by_node(const job_record_t& job);

/// The request repeats by node what is allocated: slurmctld counts from it when it simulates the end of the
/// job, and after a restart. `nodes`: how many the job has now.
void follow_allocation(list_ptr requests, list_ptr allocation, std::size_t nodes);

/// Slurm's rebuild_step_bitmaps() does no harm to this step of the job.
bool rebuild_is_safe(const job_record_t& job, const step_record_t& step);

/// The one array of a step's GRES that Slurm's gres_ctld_step_state_rebase() leaves at its old size and
/// order. `kept`: of each node that the job has now, its place among those that it had before.
void reorder_step_counts(const job_record_t& job, const std::vector<std::size_t>& kept);

}  // namespace banyan::slurm
