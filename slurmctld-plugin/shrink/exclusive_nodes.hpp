// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm counts, on each node, the jobs that share it with nobody, and gives a node to none while that count
// is not zero. A node that leaves a running job (it went DOWN, or the job gave it away) is not counted down:
// as soon as it has ended one more job it looks idle and is given to none any more, until slurmctld starts
// again.
#pragma once

#include "slurmctld-plugin/ctld_tables.hpp"

namespace banyan::slurm {

/// Does what Slurm forgets, for any job. For job_resized: `node` has just left `job`.
void count_exclusive_job_down(const job_record_t& job, node_record_t& node, const ctld_tables& ctld);

}  // namespace banyan::slurm
