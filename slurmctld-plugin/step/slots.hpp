// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which node has which slot of a training whose nodes are others than those of its plan: a spare has come in
// for one, or the training goes on with fewer.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// For select_p_job_begin of a job whose allocation srun makes for one step: the step's tasks are laid out
/// over the nodes in the order of the slots, where this Slurm knows one. srun asks for blocks
/// (spank/srun_step.cpp).
void order_own_step(job_record_t& job);

/// A node has left the job: the plan goes on with the first of its nodes and spares that the job still has.
void follow_nodes(job_record_t& job);

}  // namespace banyan::slurm
