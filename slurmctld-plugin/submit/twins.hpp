// SPDX-License-Identifier: GPL-2.0-or-later
//
// The options of a batch job that a program submits which loads no SPANK plugin, such as slurmrestd: the
// variables that stand for them (train::option_name::variable), in the job's environment.
#pragma once

#include "common/result.hpp"
#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// Makes options of the variables, for slurmctld and for the srun of the script. Nothing where the job has an
/// option: then the SPANK plugin has read the variables, and taken away those that are not for this job.
result<void> take_twins(job_desc_msg_t& job);

}  // namespace banyan::slurm
