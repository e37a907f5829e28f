// SPDX-License-Identifier: BSD-3-Clause
//
// What slurmctld tells of a job's plan, for banyan-faultd and banyan-run. One small RPC, bounded by Slurm's
// MessageTimeout. The caller has called slurm_init.
#pragma once

#include <cstdint>
#include <optional>

#include "common/result.hpp"
#include "train/plan_summary.hpp"

namespace banyan::train {

/// Of a job that runs, requeued `restart` times; empty when it was placed without a plan. unavailable:
/// slurmctld did not tell, perhaps since the job does not run; other errors: what it told cannot be believed.
result<std::optional<plan_summary>> query_plan(std::uint32_t job, std::uint32_t restart);

}  // namespace banyan::train
