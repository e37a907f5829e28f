// SPDX-License-Identifier: BSD-3-Clause
//
// What slurmctld tells of a job: srun of that whose step it starts, slurmstepd of that whose prolog was not
// run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"
#include "train/plan_summary.hpp"

namespace banyan::spank {

struct job_facts {
    uid_t uid = 0;
    std::optional<std::uint32_t> component;  ///< its number in a heterogeneous job
    std::vector<std::string> nodes;          ///< of the allocation as it is now
    std::uint32_t tasks_per_node = 0;        ///< 0: not given
    /// Empty: it was placed without a plan. An error: slurmctld did not tell, or nothing to believe.
    result<std::optional<train::plan_summary>> plan;

    /// Null where there is none, and where it is not known.
    const train::plan_summary* known_plan() const { return plan && *plan ? &**plan : nullptr; }
};

/// `component`: of a heterogeneous job, whose number `job` is; any other job has none but 0, and so has a
/// component by its own number. Two small RPCs.
result<job_facts> read_job(std::uint32_t job, std::uint32_t component);

}  // namespace banyan::spank
