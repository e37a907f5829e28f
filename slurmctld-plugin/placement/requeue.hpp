// SPDX-License-Identifier: GPL-2.0-or-later
//
// A training job that runs again: its shards are still in the memory of the nodes of its last run.
#pragma once

#include <optional>
#include <span>

#include "slurmctld-plugin/placement/train_job.hpp"

namespace banyan::slurm {

/// A node refuses a job whose credential is not of a later second than the end of its last run, and the job
/// has failed. Slurm waits two minutes for that, but not where somebody sets an earlier start, as banyan-run
/// and faultd do, nor where a second node goes down while the job is being requeued. True while it is too
/// early, wherever the job is to run.
bool ended_just_now(const job_record_t& job);

/// A requeued job waits for those of its nodes that still end its last run, since they hold its shards; but
/// not for long: a node that hangs in COMPLETING must not hold the job. True while it should wait.
bool wait_for_shards(const train_job& job);
/// The same where these were its nodes, which may be no node any more (-1).
bool wait_for_nodes(const job_record_t& job, const ctld_tables& ctld, const std::vector<int>& nodes);

/// Those of its last run, as host indices; empty for a job that runs for the first time.
std::span<const std::uint32_t> hosts_with_shards(const train_job& job);

/// Every slot on its node of the last run where that is in `free`, and the others on nodes beside them. None
/// where no node of the last run is free, not enough are, or the job runs for the first time.
std::optional<topo::placement> keep_slots(const train_job& job, const std::vector<std::uint32_t>& free);

}  // namespace banyan::slurm
