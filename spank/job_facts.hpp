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
#include "train/plan_without_select.hpp"

namespace banyan::spank {

struct job_facts {
    uid_t uid = 0;
    train::running_job running;              ///< job, restart and nodes of the allocation as they are now
    std::optional<std::uint32_t> component;  ///< its number in a heterogeneous job
    /// Empty: it was placed without a plan. An error: slurmctld did not tell, or nothing to believe.
    result<std::optional<train::plan_summary>> plan;

    /// Null where there is none, and where it is not known.
    const train::plan_summary* known_plan() const { return plan && *plan ? &**plan : nullptr; }
};

/// `component`: of a heterogeneous job, whose number `job` is; any other job has none but 0, and so has a
/// component by its own number. Two small RPCs.
result<job_facts> read_job(std::uint32_t job, std::uint32_t component);

/// Where slurmctld has stored no plan for this run of the job, and Slurm's own plugin chose its nodes, `job`
/// gets the plan that follows from what slurmctld tells and `asked`; `before`: see train::running_job. Else
/// it stays as it is; so it does, with the reason, where the SelectType is not known.
void add_plan_without_select(job_facts& job, const train::options& asked, std::vector<std::string> before);

}  // namespace banyan::spank
