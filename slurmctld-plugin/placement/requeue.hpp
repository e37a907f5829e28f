// SPDX-License-Identifier: GPL-2.0-or-later
//
// Placement of a train job that may run again: its shards are still in the memory of the nodes of its last
// run.
#pragma once

#include <optional>

#include "slurmctld-plugin/placement/train_job.hpp"

namespace banyan::slurm {

/// A requeued job waits for those of its nodes that still end its last run, since they hold its shards; but
/// not for long: a node that hangs in COMPLETING must not hold the job. True while it should wait.
bool wait_for_shards(const train_job& job);

/// On some of `free`. A requeued job keeps every slot on its node if that is free, and the others are
/// replaced; where none is free, or the job runs for the first time, it is placed as if new. None where the
/// hosts do not suffice, and said once where something else is wrong.
std::optional<topo::placement> place_near_shards(const train_job& job,
                                                 const std::vector<std::uint32_t>& free);

}  // namespace banyan::slurm
