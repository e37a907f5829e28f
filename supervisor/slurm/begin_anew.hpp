// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a job that runs could begin anew on the nodes that it has.
#pragma once

#include <cstdint>

#include "common/result.hpp"
#include "train/slurm/libslurm.hpp"

namespace banyan::supervisor {

/// Slurm starts a job by rules that a running one has passed long ago: its partition may be down by now, or
/// lack a node of it, a node may be about to drain, a reservation may come. Where the job itself says more
/// than how many nodes of which kind it wants (-w, a deadline, GPUs in all or of each task), the answer is
/// no. `nodes`: all that it asks for. unavailable: slurmctld does not answer.
result<bool> could_begin_anew(const slurm_job_info_t& job, std::uint32_t nodes);

}  // namespace banyan::supervisor
