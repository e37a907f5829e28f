// SPDX-License-Identifier: GPL-2.0-or-later
//
// Lost nodes that a --no-kill training job cannot do without, spare or not. One is the node of its script:
// Slurm would let the job go on with nothing in it until its time is over. The other is a node of its ranks
// where no banyan-run is there to start the step again: the script would see its step fail, and the job fail.
// The job ends there instead, as one without --no-kill does: requeued where it may be.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// For job_resized, before cons_tres: `node` has just left the job. Where it is DOWN, and the job cannot do
/// without it, the bell is rung: in the middle of a job's shrinking it cannot be ended.
void node_leaves(job_record_t& job, const node_record_t& node) noexcept;

/// For reconfigure, with which slurmctld ends the reading of its state: a node may have left a job in the
/// last moment of the slurmctld before. Any lock to read jobs.
void look_for_lost_jobs();

/// For the bell, under its locks.
void end_lost_jobs();

/// For job_fini. A job that is requeued starts early (early_start.hpp), whoever requeued it: banyan-run,
/// which went with the script, can ask for nothing.
void begin_again(job_record_t& job);

}  // namespace banyan::slurm
