// SPDX-License-Identifier: BSD-3-Clause
//
// The queries over libslurm's public calls.
#include "fault/slurm/job_query.hpp"

#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "common/text.hpp"

namespace banyan::supervisor {
namespace {

void ready() {
    static std::once_flag once;
    std::call_once(once, [] { slurm_init(nullptr); });
}

std::unexpected<error> slurm_failed(const std::string& doing) {
    const int err = slurm_get_errno();
    return fail(err == ESLURM_INVALID_JOB_ID ? errc::not_found : errc::unavailable,
                fmt::format("{}: {}", doing, slurm_strerror(err)));
}

std::vector<std::string> names_of(const char* list) {
    if (!list) return {};
    auto names = expand_hostlist(list);
    return names ? std::move(*names) : std::vector<std::string>{};
}

// libslurm does not export its own names.
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

}  // namespace

result<job_view> query_job(std::uint32_t job) {
    ready();
    job_info_msg_t* answer = nullptr;
    if (slurm_load_job(&answer, job, SHOW_ALL) != SLURM_SUCCESS)
        return slurm_failed(fmt::format("cannot read job {}", job));
    const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer, slurm_free_job_info_msg);
    if (answer->record_count == 0) return fail(errc::not_found, fmt::format("Slurm has no job {}", job));
    const auto& record = answer->job_array[0];
    job_view out;
    out.running = record.job_state == JOB_RUNNING || (record.job_state & JOB_STATE_BASE) == JOB_SUSPENDED;
    if (record.job_state & JOB_COMPLETING) out.running = false;
    out.state = state_name(record.job_state);
    out.nodes = names_of(record.nodes);
    if (record.admin_comment) out.admin_comment = record.admin_comment;
    return out;
}

result<step_view> query_step(std::uint32_t job, pid_t srun) {
    ready();
    job_step_info_response_msg_t* answer = nullptr;
    if (slurm_get_job_steps(0, job, NO_VAL, &answer, SHOW_ALL) != SLURM_SUCCESS)
        return slurm_failed(fmt::format("cannot read the steps of job {}", job));
    const std::unique_ptr<job_step_info_response_msg_t, void (*)(job_step_info_response_msg_t*)> owner(
        answer, slurm_free_job_step_info_response_msg);
    for (std::uint32_t i = 0; i < answer->job_step_count; ++i) {
        const auto& step = answer->job_steps[i];
        if (step.srun_pid == static_cast<std::uint32_t>(srun) &&
            step.step_id.step_id < SLURM_MAX_NORMAL_STEP_ID)
            return step_view{step.step_id.step_id, names_of(step.nodes)};
    }
    return fail(errc::not_found, fmt::format("job {} has no step of srun process {}", job, srun));
}

}  // namespace banyan::supervisor
