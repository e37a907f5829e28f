// SPDX-License-Identifier: GPL-2.0-or-later
//
// The array of a job's SPANK environment, of a submission (job_desc_msg_t) or of a job (job_record_t).
#pragma once

#include <string_view>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// Removes the entries for which `unwanted` is true. What is behind the last one is null, as Slurm's
/// env_array_merge wants it.
template <class Holder, class Unwanted>
void remove_entries(Holder& job, Unwanted unwanted) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i) {
        char* entry = job.spank_job_env[i];
        if (entry && !unwanted(std::string_view(entry)))
            job.spank_job_env[kept++] = entry;
        else
            xfree(entry);
    }
    for (auto i = kept; i < job.spank_job_env_size; ++i) job.spank_job_env[i] = nullptr;
    job.spank_job_env_size = kept;
}

}  // namespace banyan::slurm
