// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/select/het_options.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/supplement.hpp"
#include "train/components.hpp"

namespace banyan::slurm {
namespace {

bool is_published(std::string_view entry) {
    for (const auto& name : train::option_names)
        if (entry.starts_with(std::string(name.variable) + "_HET_GROUP_")) return true;
    return false;
}

/// "BANYAN_TRAIN_PARALLEL_HET_GROUP_1=tp=8,dp=4" and so on, for one component.
void collect(const job_record_t& component, std::vector<std::string>& out) {
    for (std::size_t i = 0; i < train::option_count; ++i) {
        const auto head = std::string(train::option_names[i].env) + "=";
        for (std::uint32_t at = 0; at < component.spank_job_env_size; ++at) {
            const std::string_view entry = component.spank_job_env[at] ? component.spank_job_env[at] : "";
            if (!entry.starts_with(head) || entry.size() > head.size() + train::max_option_text) continue;
            out.push_back(train::component_variable(static_cast<train::which>(i), component.het_job_offset) +
                          "=" + std::string(entry.substr(head.size())));
        }
    }
}

}  // namespace

void publish_options(job_record_t& leader) {
    if (!leader.het_job_list || !leader.details || !leader.batch_flag) return;
    std::vector<std::string> options;
    for (const auto* component : entries<job_record_t>(leader.het_job_list)) collect(*component, options);
    replace_supplement(leader, is_published, options);  // those of an earlier start go
}

}  // namespace banyan::slurm
