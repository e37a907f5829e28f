// SPDX-License-Identifier: GPL-2.0-or-later
//
// Cores, CPUs and memory of a job that takes the nodes of another, in the books of select/cons_tres.
#pragma once

#include <vector>

#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/growth/job_nodes.hpp"

namespace banyan::slurm {

/// cons_tres has what move_allocation() needs, and the arrays of the job's resources have as many cores as
/// its nodes.
bool can_move_allocation(const job_record_t& job, const ctld_tables& ctld);

/// All nodes of `donor` become nodes of `job`; `nodes` are those of both. The lists of GRES of both are left
/// out.
void move_allocation(job_record_t& donor, job_record_t& job, const std::vector<origin>& nodes,
                     const ctld_tables& ctld);

}  // namespace banyan::slurm
