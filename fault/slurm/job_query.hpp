// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-run asks slurmctld about its own job. One small RPC each, bounded by Slurm's MessageTimeout;
// the caller decides how often. Needs a Slurm configuration, as srun does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"

namespace banyan::supervisor {

struct job_view {
    bool running = false;            ///< false: cancelled, requeued, timed out, or going for another reason
    std::string state;               ///< as squeue prints it, for messages
    std::vector<std::string> nodes;  ///< of the allocation now; a node that is DOWN has left a --no-kill job
    std::string admin_comment;
};
result<job_view> query_job(std::uint32_t job);

struct step_view {
    std::uint32_t step = 0;
    std::vector<std::string> nodes;
};
/// The step of `job` that the srun process `srun` started; not_found when slurmctld has none (any more).
result<step_view> query_step(std::uint32_t job, pid_t srun);

}  // namespace banyan::supervisor
