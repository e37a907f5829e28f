// SPDX-License-Identifier: BSD-3-Clause
//
// In srun: the plan of the job whose step it starts, and the numbers that follow.
#pragma once

#include <cstdint>
#include <optional>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"
#include "spank/job_facts.hpp"
#include "train/options.hpp"

namespace banyan::spank {

/// The same for the job whose options `asked` has, but for a shape of the step's own: which node had which
/// slot stands in the script's environment. `component`: of the heterogeneous job whose environment this is.
void add_plan_without_select(job_facts& job, const train::options& asked,
                             std::optional<std::uint32_t> component);

/// The plan's numbers; of a job that was placed without one those that were submitted.
result<topo::request> request_of(const job_facts& job, const train::options& asked);

}  // namespace banyan::spank
