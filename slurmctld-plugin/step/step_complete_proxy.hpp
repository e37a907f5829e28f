// SPDX-License-Identifier: GPL-2.0-or-later
//
// The word of a lost node. The slurmstepds of a step tell each other, along a tree, that they are through;
// one waits for a minute for those below it, and its job, which is to start again, with it. A dead one says
// none.
#pragma once

#include <string>
#include <vector>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// Says it for each node of the job's steps that is DOWN, in its place, to the node above. It may be said
/// again, and a node that lives says it, too: it counts once. Under the read lock of nodes.
void complete_for_lost_nodes(const job_record_t& job);

/// The steps that run and may be the training: what says --overlap runs beside it.
std::vector<const step_record_t*> training_steps(const job_record_t& job);
/// The step was laid out over the node, whether the job still has it or not.
bool was_on(const step_record_t& step, const std::string& node);

}  // namespace banyan::slurm
