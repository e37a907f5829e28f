// SPDX-License-Identifier: BSD-3-Clause
//
// The queries over libslurm's public calls.
#include "supervisor/slurm/job_query.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "common/text.hpp"
#include "train/slurm/job_words.hpp"
#include "train/slurm/own_conf.hpp"
#include "train/slurm/running_job.hpp"

namespace banyan::supervisor {
namespace {

void ready() {
    static std::once_flag once;
    std::call_once(once, [] { slurm_init(nullptr); });
}

std::unexpected<error> slurm_failed(const std::string& doing) {
    const int err = libslurm::last_error();
    return fail(err == ESLURM_INVALID_JOB_ID ? errc::not_found : errc::unavailable,
                fmt::format("{}: {}", doing, slurm_strerror(err)));
}

std::string why_not_requeued(const slurm_job_info_t& job) {
    // Only the first component of a heterogeneous job has the script. Slurm itself refuses what is not one.
    const bool later_component = job.het_job_id != 0 && job.het_job_id != NO_VAL && job.het_job_offset > 0;
    if (!job.batch_flag && !later_component) return "a job of salloc cannot be requeued";
    if (!job.requeue) return "it may not be requeued (--no-requeue, or JobRequeue=0 in slurm.conf)";
    return {};
}

std::vector<std::string> names_of(const char* list) {
    if (!list) return {};
    auto names = expand_hostlist(list);
    return names ? std::move(*names) : std::vector<std::string>{};
}

}  // namespace

result<job_state> query_job(std::uint32_t job) {
    ready();
    job_info_msg_t* answer = nullptr;
    if (libslurm::load_job(&answer, job) != SLURM_SUCCESS)
        return slurm_failed(fmt::format("cannot read job {}", job));
    const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer, slurm_free_job_info_msg);
    if (answer->record_count == 0) return fail(errc::not_found, fmt::format("Slurm has no job {}", job));
    const auto& record = answer->job_array[0];
    job_state out;
    out.running = record.job_state == JOB_RUNNING || (record.job_state & JOB_STATE_BASE) == JOB_SUSPENDED;
    if (record.job_state & JOB_COMPLETING) out.running = false;
    out.name = train::state_name(record.job_state);
    if (auto told = train::running_job_of(record)) out.told = std::move(*told);
    out.nodes = out.told.nodes;
    out.restarts = record.restart_cnt;
    out.heterogeneous = record.het_job_id != 0 && record.het_job_id != NO_VAL;
    out.requeue_as = out.heterogeneous ? record.het_job_id : job;
    out.starts_at_once = libslurm::starts_at_once(record);
    out.no_requeue = why_not_requeued(record);
    return out;
}

result<bool> plans_without_select() {
    ready();
    return libslurm::plans_without_select();
}

result<step_view> query_step(std::uint32_t job, pid_t srun) {
    ready();
    job_step_info_response_msg_t* answer = nullptr;
    if (libslurm::load_steps(&answer, job) != SLURM_SUCCESS)
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

result<void> requeue_job(const job_state& job) {
    ready();
    if (libslurm::requeue(job.requeue_as) == SLURM_SUCCESS) return {};
    const int err = libslurm::last_error();
    const auto what = fmt::format("cannot requeue job {}: {}", job.requeue_as, slurm_strerror(err));
    switch (err) {
        case ESLURM_JOB_PENDING:
            return {};
        case ESLURM_DISABLED:
        case ESLURM_BATCH_ONLY:
        case ESLURM_ACCESS_DENIED:
        case ESLURM_USER_ID_MISSING:
        case ESLURM_INVALID_JOB_ID:
        case ESLURM_ALREADY_DONE:
            return fail(errc::denied, what);
        default:
            return fail(errc::unavailable, what);
    }
}

result<std::int64_t> begin_time(const job_state& job) {
    ready();
    job_info_msg_t* answer = nullptr;
    if (libslurm::load_job(&answer, job.requeue_as) != SLURM_SUCCESS)
        return slurm_failed(fmt::format("cannot read job {}", job.requeue_as));
    const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer, slurm_free_job_info_msg);
    std::optional<std::int64_t> out;
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& record = answer->job_array[i];
        // The first of an array is asked for by the number of all.
        if (record.job_id != job.requeue_as && !(job.heterogeneous && record.het_job_id == job.requeue_as))
            continue;
        const std::int64_t begin = record.eligible_time;
        out = std::min(out.value_or(begin), begin);
    }
    if (!out) return fail(errc::not_found, fmt::format("Slurm has no job {}", job.requeue_as));
    return *out;
}

result<void> start_in(const job_state& job, std::uint32_t seconds) {
    ready();
    job_desc_msg_t change;
    slurm_init_job_desc_msg(&change);
    auto leader = std::to_string(job.requeue_as);
    // By its name a heterogeneous job is changed in all of its parts, but an array would be, too.
    if (job.heterogeneous)
        change.job_id_str = leader.data();
    else
        libslurm::name_job(change, job.requeue_as);
    change.begin_time = std::time(nullptr) + seconds;
    if (slurm_update_job(&change) != SLURM_SUCCESS)
        return slurm_failed(fmt::format("cannot set the start time of job {}", job.requeue_as));
    return {};
}

bool has_epilog() {
    ready();
    slurm_conf_t* conf = nullptr;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) return true;
    const bool out = conf->epilog && *conf->epilog;
    libslurm::free_conf(conf);
    return out;
}

}  // namespace banyan::supervisor
