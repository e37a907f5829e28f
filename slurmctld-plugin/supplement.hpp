// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job's supplemental environment: variables that slurmctld itself adds, saves with the job, and gives to
// the batch script and to whoever looks the allocation up. No user writes there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// Replaces the entries for which `ours` is true by `entries`, "NAME=value". Others stay, in their order.
template <class Ours>
void replace_supplement(job_record_t& job, Ours ours, const std::vector<std::string>& entries) {
    if (!job.details) return;
    auto& details = *job.details;
    std::uint16_t kept = 0;
    for (std::uint16_t i = 0; i < details.env_cnt; ++i) {
        char* entry = details.env_sup[i];
        details.env_sup[i] = nullptr;
        if (entry && !ours(std::string_view(entry)))
            details.env_sup[kept++] = entry;
        else
            xfree(entry);
    }
    details.env_cnt = kept;
    // Slurm copies details whole, and then only an array that has entries: an empty one would be freed twice.
    if (kept == 0) xfree(details.env_sup);
    if (entries.empty()) return;
    // And the null that ends the array.
    xrecalloc(details.env_sup, kept + entries.size() + 1, sizeof(char*));
    for (const auto& entry : entries) details.env_sup[details.env_cnt++] = xstrdup(entry.c_str());
}

}  // namespace banyan::slurm
