// SPDX-License-Identifier: BSD-3-Clause
#include "train/slurm/plan_query.hpp"

#include <memory>

#include <fmt/format.h>

#include "train/slurm/libslurm.hpp"

namespace banyan::train {

result<std::optional<plan_summary>> query_plan(std::uint32_t job, std::uint32_t restart) {
    resource_allocation_response_msg_t* answer = nullptr;
    const bool told = libslurm::lookup_allocation(&answer, job) == SLURM_SUCCESS;
    const std::unique_ptr<resource_allocation_response_msg_t, void (*)(resource_allocation_response_msg_t*)>
        owner(answer, slurm_free_resource_allocation_response_msg);
    // It also succeeds, with nothing, for a job that loses its allocation in this moment.
    if (!told || !answer)
        return fail(errc::unavailable,
                    fmt::format("cannot read the plan of job {}: {}", job,
                                told ? "it has no allocation" : slurm_strerror(libslurm::last_error())));
    return summary_in(answer->environment, answer->env_size, job, restart);
}

}  // namespace banyan::train
