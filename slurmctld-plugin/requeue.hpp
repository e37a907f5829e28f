// SPDX-License-Identifier: GPL-2.0-or-later
//
// A train job that runs again: its shards are still in the memory of the nodes of its last run.
#pragma once

#include "train_job.hpp"

namespace banyan::slurm {

/// A requeued job waits for those of its nodes that still end its last run, since they hold its shards; but
/// not for long: a node that hangs in COMPLETING must not hold the job. True while it should wait.
bool wait_for_shards(const train_job& job);

/// Every slot whose node is free again keeps it, the others are replaced. None for a job that is not
/// requeued, and where no node of the last run is free.
std::optional<topo::placement> place_again(const train_job& job, const std::vector<std::uint32_t>& free);

/// Nodes of the last run of a requeued job.
std::vector<std::uint32_t> nodes_with_shards(const train_job& job);

}  // namespace banyan::slurm
