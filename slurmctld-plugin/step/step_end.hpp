// SPDX-License-Identifier: GPL-2.0-or-later
//
// Steps that nobody ends. Slurm ends a step when the last of its nodes says that it is through. Where that
// last node is lost instead, Slurm notes that it is through and looks no further: the step holds the nodes
// until the job ends, and none can follow it.
#pragma once

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// Ends the steps of a training job that are through on all of their nodes. For when a node has left the job:
/// slurmctld holds its locks, and walks over no list of steps.
void end_finished_steps(job_record_t& job);

/// Remembers the steps that Slurm has just killed, since `node` is lost. For when it has left the job.
void note_broken_steps(const job_record_t& job, const node_record_t& node);

/// Ends those of a training job when one more step was asked for, and again a second later: every rank was
/// killed when the node was lost, but a slurmstepd waits for a minute for a word of those below it in its
/// tree, and a dead one says none. For step_pick_nodes: slurmctld holds its locks, and walks over no list of
/// steps.
void end_broken_steps(job_record_t& job);

}  // namespace banyan::slurm
