// SPDX-License-Identifier: GPL-2.0-or-later
//
// Steps that nobody ends since they lost a node. They hold the nodes, and none can follow them.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// Ends those of a training job that note_broken_steps knows when one more step was asked for, and again a
/// second later: every rank was killed when the node was lost, but a slurmstepd waits for a minute for a word
/// of those below it in its tree, and a dead one says none. For step_pick_nodes: slurmctld holds its locks,
/// and walks over no list of steps.
void end_broken_steps(job_record_t& job);

/// The word that the step is through on its first `nodes` nodes, with which slurmctld does what follows the
/// last one. Nobody walks over a list of steps meanwhile.
void say_it_is_through(const slurm_step_id_t& step, std::uint32_t nodes);

}  // namespace banyan::slurm
