// SPDX-License-Identifier: BSD-3-Clause
#include "spank/job_facts.hpp"

#include <memory>

#include <fmt/format.h>

#include "common/text.hpp"
#include "spank/spank_slurm.hpp"
#include "train/slurm/own_conf.hpp"
#include "train/slurm/running_job.hpp"

namespace banyan::spank {
namespace {

bool is_heterogeneous(const job_info_t& record) {
    return record.het_job_id != 0 && record.het_job_id != NO_VAL;
}

bool is_asked(const job_info_t& record, std::uint32_t job, std::uint32_t component) {
    if (is_heterogeneous(record) && record.het_job_id == job) return record.het_job_offset == component;
    return record.job_id == job && component == 0;
}

using allocation =
    std::unique_ptr<resource_allocation_response_msg_t, void (*)(resource_allocation_response_msg_t*)>;

result<std::optional<train::plan_summary>> read_plan(const job_info_t& record) {
    resource_allocation_response_msg_t* answer = nullptr;
    const bool told = libslurm::lookup_allocation(&answer, record.job_id) == SLURM_SUCCESS;
    const allocation owner(answer, slurm_free_resource_allocation_response_msg);
    // It also succeeds, with nothing, for a job that loses its allocation in this moment.
    if (!told || !answer)
        return fail(errc::unavailable,
                    fmt::format("cannot read the plan of job {}: {}", record.job_id,
                                told ? "it has no allocation" : slurm_strerror(libslurm::last_error())));
    return train::summary_in(answer->environment, answer->env_size, record.job_id, record.restart_cnt);
}

}  // namespace

result<job_facts> read_job(std::uint32_t job, std::uint32_t component) {
    job_info_msg_t* answer = nullptr;
    if (libslurm::load_job(&answer, job) != SLURM_SUCCESS)
        return fail(errc::unavailable,
                    fmt::format("cannot read job {}: {}", job, slurm_strerror(libslurm::last_error())));
    const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer, slurm_free_job_info_msg);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& record = answer->job_array[i];
        if (!is_asked(record, job, component)) continue;
        BANYAN_TRY(auto running, train::running_job_of(record));
        const auto its_component =
            is_heterogeneous(record) ? std::optional(record.het_job_offset) : std::nullopt;
        return job_facts{record.user_id, std::move(running), its_component, read_plan(record)};
    }
    return fail(errc::not_found, component == 0
                                     ? fmt::format("Slurm has no job {}", job)
                                     : fmt::format("Slurm has no component {} of job {}", component, job));
}

void add_plan_without_select(job_facts& job, const train::options& asked, std::vector<std::string> before) {
    // A plan of an earlier run is left over from a time when SelectType was ours.
    const bool not_told = !job.plan && job.plan.error().code == errc::unavailable;
    if (not_told || job.known_plan()) return;
    const auto own = libslurm::plans_without_select();
    if (!own) {
        if (job.plan) job.plan = std::unexpected(own.error());
        return;
    }
    if (!*own) return;
    auto running = job.running;
    running.before = std::move(before);
    const auto plan = train::plan_without_select(asked, running);
    if (plan)
        job.plan = train::summary_of(*plan);
    else
        job.plan = std::unexpected(plan.error());
}

}  // namespace banyan::spank
