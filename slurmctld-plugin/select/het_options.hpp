// SPDX-License-Identifier: GPL-2.0-or-later
//
// Heterogeneous jobs: one component trains, and the script that starts it may run on another.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// For the batch script of `leader`, which runs on the first component: the --train options of each, so that
/// srun finds them. Does nothing for other jobs.
void publish_options(job_record_t& leader);

}  // namespace banyan::slurm
