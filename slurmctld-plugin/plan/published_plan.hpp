// SPDX-License-Identifier: GPL-2.0-or-later
//
// What others learn of a job's plan: programs by a summary in its supplemental environment
// (docs/decisions/009), people by the line in its AdminComment. Both follow from the plan, and say what is so
// of the job's present run.
#pragma once

#include "slurmctld-plugin/release/release.hpp"
#include "train/plan.hpp"

namespace banyan::slurm {

/// Replaces what was told before.
void publish_plan(job_record_t& job, const train::plan& plan);

/// The job has no plan, or that of an earlier run: nothing of it may be believed.
void retract_plan(job_record_t& job);

}  // namespace banyan::slurm
