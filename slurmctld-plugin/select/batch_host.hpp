// SPDX-License-Identifier: GPL-2.0-or-later
//
// Lost nodes that a --no-kill training job cannot do without, spare or not. One is the node of its script:
// Slurm would let the job go on with nothing in it until its time is over. The other is a node of its ranks
// where no banyan-run is there to start the step again: the script would see its step fail, and the job fail.
// The job ends there instead, as one without --no-kill does: requeued where it may be.
#pragma once

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// Has slurmctld ask us about each job of a node that is lost. For the plugin's job_init, which slurmctld
/// alone calls; where something else is asked already, or this release asks nobody, the log has it.
void watch_batch_hosts();
/// For the plugin's end.
void forget_batch_hosts();

/// For job_fini: a job that is requeued is a --no-kill job again, and starts early (early_start.hpp), whoever
/// requeued it: banyan-run, which went with the script, can ask for nothing.
void begin_again(job_record_t& job);

}  // namespace banyan::slurm
