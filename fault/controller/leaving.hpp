// SPDX-License-Identifier: BSD-3-Clause
//
// Whether jobs can do without a node that they have.
#pragma once

#include <string>
#include <vector>

#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

/// All of `jobs` go on when they lose `node`: with a spare of theirs, or from the queue. The error names one
/// that does not, and why; unavailable: slurmctld did not tell. Blocks.
result<void> can_leave(cluster& slurm, const std::vector<job_status>& jobs, const std::string& node);

/// Those that have `node` when no new work comes to it any more, which are then known to go on without it; an
/// error as of can_leave. It is set to drain with `reason`; where that is empty it takes no new work already.
/// `drained` becomes true when that is done, whatever comes after it. Blocks.
result<std::vector<job_status>> jobs_that_leave(cluster& slurm, const std::string& node,
                                                const std::string& reason, bool& drained);

}  // namespace banyan::fault
