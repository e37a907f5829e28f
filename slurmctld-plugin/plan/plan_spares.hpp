// SPDX-License-Identifier: GPL-2.0-or-later
//
// The spares that a job's plan names are nodes of the job.
#pragma once

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// `node` has left the job: the plan no longer names it as a spare, nor what is told of the plan.
void forget_spare(job_record_t& job, const node_record_t& node);

}  // namespace banyan::slurm
