// SPDX-License-Identifier: GPL-2.0-or-later
//
// Rank order: which task ids a node of a new step gets. slurmctld has laid the step out by then; only the ids
// move.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// Gives every node of the step the ranks that the job's plan has for it. A step that is not the training
/// itself (another number of tasks, uneven tasks) is left as Slurm laid it out.
void order_step(step_record_t& step);

}  // namespace banyan::slurm
