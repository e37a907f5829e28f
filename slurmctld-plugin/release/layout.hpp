// SPDX-License-Identifier: GPL-2.0-or-later
//
// Whether Slurm's private structures are as the headers say that the plugins were built with. A release's
// number does not tell: vendors patch Slurm, and its own releases have changed them. Slurm's xmalloc knows
// the size of each object, and one that differs from ours has other fields.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// To be asked before any field of the object is read; null fits. Looks at each kind of structure once; at
/// a step's when a job first has one, so that the first job is placed before it. Once one does not fit the
/// log has both sizes, and the answer is false for good: then nothing of ours touches a job. Under
/// slurmctld's job lock.
bool layout_fits(const job_record_t* job);
bool layout_fits(const step_record_t* step);
bool layout_fits(const node_record_t* node);
/// Of the job, which fits, and of its steps: before anything of their GRES is read.
bool gres_fit(const job_record_t& job);

}  // namespace banyan::slurm
