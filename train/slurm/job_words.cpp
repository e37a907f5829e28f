// SPDX-License-Identifier: BSD-3-Clause
#include "train/slurm/job_words.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include "train/slurm/libslurm.hpp"

namespace banyan::train {

std::string state_name(std::uint32_t state) {
    if (state & (JOB_REQUEUE | JOB_REQUEUE_HOLD)) return "REQUEUED";
    switch (state & JOB_STATE_BASE) {
        case JOB_PENDING:
            return "PENDING";
        case JOB_RUNNING:
            return state & JOB_COMPLETING ? "COMPLETING" : "RUNNING";
        case JOB_SUSPENDED:
            return "SUSPENDED";
        case JOB_COMPLETE:
            return "COMPLETED";
        case JOB_CANCELLED:
            return "CANCELLED";
        case JOB_FAILED:
            return "FAILED";
        case JOB_TIMEOUT:
            return "TIMEOUT";
        case JOB_NODE_FAIL:
            return "NODE_FAIL";
        case JOB_PREEMPTED:
            return "PREEMPTED";
        case JOB_DEADLINE:
            return "DEADLINE";
        case JOB_OOM:
            return "OUT_OF_MEMORY";
        default:
            return std::to_string(state);
    }
}

std::string end_in_words(std::uint32_t state, std::uint32_t status) {
    auto out = state_name(state & ~std::uint32_t{JOB_COMPLETING});
    const auto wait_status = static_cast<int>(status);
    if (WIFSIGNALED(wait_status)) return out + fmt::format(", signal {}", WTERMSIG(wait_status));
    if (WEXITSTATUS(wait_status) != 0) out += fmt::format(", exit code {}", WEXITSTATUS(wait_status));
    return out;
}

}  // namespace banyan::train
