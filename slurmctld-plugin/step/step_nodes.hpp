// SPDX-License-Identifier: GPL-2.0-or-later
//
// The nodes of a training step whose srun could not know them: it made the allocation itself.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// The nodes that run ranks, for the first step of an allocation that srun made for it, if there are spares.
/// Null for every other step, and whenever Slurm's own choice should stand. Slurm frees it.
bitstr_t* nodes_of_step(job_record_t& job);

}  // namespace banyan::slurm
