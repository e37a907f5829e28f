// SPDX-License-Identifier: BSD-3-Clause
//
// What slurmctld tells srun of the job whose step it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "train/admin_comment.hpp"

namespace banyan::spank {

struct job_facts {
    bool heterogeneous = false;         ///< this is one component
    std::vector<std::string> nodes;     ///< of the allocation as it is now
    std::uint32_t tasks_per_node = 0;   ///< 0: not given
    result<train::admin_summary> plan;  ///< as AdminComment has it
};

/// `component`: of a heterogeneous job, whose number `job` is; any other job has none but 0.
result<job_facts> read_job(std::uint32_t job, std::uint32_t component);

}  // namespace banyan::spank
