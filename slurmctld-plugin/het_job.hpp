// SPDX-License-Identifier: GPL-2.0-or-later
//
// Heterogeneous jobs: one component may train.
#pragma once

#include "common/result.hpp"
#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// Of a submission, whose components come one after the other in one thread. An error when `trains` and an
/// earlier component does.
result<void> check_component(const job_desc_msg_t& job, bool trains);

/// For the batch script of `leader`, which runs on the first component: the --train options of each, so that
/// srun finds them. Does nothing for other jobs.
void publish_options(job_record_t& leader);

}  // namespace banyan::slurm
