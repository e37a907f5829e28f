// SPDX-License-Identifier: BSD-3-Clause
//
// What a node's slurmd says about the processes of a step. libslurm gives the same error for a node that is
// not there, for one that refuses and for one that does not answer: only the last is told of.
#pragma once

#include "fault/slurm/cluster.hpp"
#include "train/slurm/libslurm.hpp"

namespace banyan::fault {

/// `where` as Slurm has the node. Blocks: for twice Slurm's message timeout where nothing answers.
result<left_behind> processes_left(slurm_step_id_t step, const node_status& where);

}  // namespace banyan::fault
