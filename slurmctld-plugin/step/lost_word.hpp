// SPDX-License-Identifier: GPL-2.0-or-later
//
// The word of a lost node. The slurmstepds of a step tell each other, along a tree, that they are through;
// one waits for a minute for those below it, and its job, which is to start again, with it. A dead one says
// none.
#pragma once

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// Says it in the node's place, for each step of the job, to the node above. Of a node that lives the word
/// comes twice, and counts once. For node_fail: slurmctld holds its locks, and the node is still in the job.
void speak_for_lost(const job_record_t& job, const node_record_t& lost);

}  // namespace banyan::slurm
