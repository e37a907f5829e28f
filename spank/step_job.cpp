// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "spank/plugin.hpp"
#include "train/admin_comment.hpp"

namespace banyan::spank {

std::optional<step_job> ask_for_job(std::uint32_t job) {
    job_info_msg_t* answer = nullptr;
    if (slurm_load_job(&answer, job, SHOW_ALL) != SLURM_SUCCESS) {
        slurm_error("banyan: slurmctld did not tell about job %u; its tasks get no rank environment", job);
        return std::nullopt;
    }
    const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer, slurm_free_job_info_msg);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& record = answer->job_array[i];
        if (record.job_id != job) continue;
        step_job out;
        if (record.het_job_id != 0 && record.het_job_id != NO_VAL) out.component = record.het_job_offset;
        const auto line = train::parse_admin_comment(record.admin_comment ? record.admin_comment : "");
        // Without a snapshot of the fabric there is no line.
        out.launchers = line ? line->tasks != line->ranks : record.ntasks_per_node == 1;
        return out;
    }
    return std::nullopt;
}

}  // namespace banyan::spank
