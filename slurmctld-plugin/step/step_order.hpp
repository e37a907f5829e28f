// SPDX-License-Identifier: GPL-2.0-or-later
//
// Rank order: which task ids a node of a new step gets. slurmctld has laid the step out by then; only the ids
// move.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// For the one step of an allocation that srun made for it: gives every node the ranks that the job's plan
/// has for it. srun itself orders any other step (025). A step of other numbers stays as Slurm laid it out.
void order_step(step_record_t& step);

}  // namespace banyan::slurm
