// SPDX-License-Identifier: GPL-2.0-or-later
//
// The nodes and rank order of a training job, on nodes that are free at one time.
#pragma once

#include <optional>

#include "slurmctld-plugin/placement/train_job.hpp"

namespace banyan::slurm {

/// On some of `free`, host indices. A requeued job keeps its slots where it can; else it is placed as if new,
/// near what it had. None where the hosts do not suffice, or the search would take too long; what else is
/// wrong the log has once.
std::optional<topo::placement> choose_nodes(const train_job& job, const std::vector<std::uint32_t>& free);

}  // namespace banyan::slurm
