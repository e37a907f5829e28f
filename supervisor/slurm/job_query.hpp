// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-run asks of slurmctld for its own job. One small RPC each, bounded by Slurm's MessageTimeout;
// the caller decides how often. Needs a Slurm configuration, as srun does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"
#include "train/plan_without_select.hpp"

namespace banyan::supervisor {

struct job_state {
    bool running = false;            ///< false: cancelled, requeued, timed out, or going for another reason
    std::string name;                ///< of the state as squeue prints it, for messages
    std::vector<std::string> nodes;  ///< of the allocation now; a node that is DOWN has left a --no-kill job
    train::running_job told;         ///< the same, as a plan without the select plugin is made of it
    std::uint32_t restarts = 0;      ///< how often it was requeued
    std::string no_requeue;          ///< why Slurm would not requeue it; empty when it would
    std::uint32_t requeue_as = 0;    ///< the job id to requeue: that of the leader in a heterogeneous job
    bool heterogeneous = false;
    bool starts_at_once = false;  ///< when it is requeued, without a start time of ours
};
result<job_state> query_job(std::uint32_t job);

/// Another select plugin than ours chooses the nodes of all jobs. An error: it is not known.
result<bool> plans_without_select();

struct step_view {
    std::uint32_t step = 0;
    std::vector<std::string> nodes;
};
/// The step of `job` that the srun process `srun` started; not_found when slurmctld has none (any more).
result<step_view> query_step(std::uint32_t job, pid_t srun);

/// Puts `job` back into the queue, with the rights of its user. One that is on its way there
/// already counts as done. unavailable: slurmctld did not answer, or is busy; any other error is its refusal.
result<void> requeue_job(const job_state& job);

/// When the requeued job may begin, as it stands: the earliest of its components. One of the past: Slurm will
/// choose.
result<std::int64_t> begin_time(const job_state& job);

/// Has the requeued job start in `seconds` rather than after Slurm's own two minutes. Slurm keeps the time
/// only if it is still to come when the last of the job's processes and its epilog have ended.
result<void> start_in(const job_state& job, std::uint32_t seconds);

/// Whether nodes run an epilog at the end of a job, which may take its time.
bool has_epilog();

}  // namespace banyan::supervisor
