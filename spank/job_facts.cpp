// SPDX-License-Identifier: BSD-3-Clause
#include "spank/job_facts.hpp"

#include <memory>

#include <fmt/format.h>

#include "common/text.hpp"
#include "spank/spank_slurm.hpp"

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
        BANYAN_TRY(auto nodes, expand_hostlist(record.nodes ? record.nodes : ""));
        const auto per_node = record.ntasks_per_node;
        const auto its_component =
            is_heterogeneous(record) ? std::optional(record.het_job_offset) : std::nullopt;
        return job_facts{record.user_id, its_component, std::move(nodes), per_node < NO_VAL16 ? per_node : 0u,
                         read_plan(record)};
    }
    return fail(errc::not_found, component == 0
                                     ? fmt::format("Slurm has no job {}", job)
                                     : fmt::format("Slurm has no component {} of job {}", component, job));
}

}  // namespace banyan::spank
