// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/plan/plan_spares.hpp"

#include <algorithm>
#include <string>

#include "slurmctld-plugin/plan/admin_line.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "train/admin_comment.hpp"

namespace banyan::slurm {

void forget_spare(job_record_t& job, const node_record_t& node) {
    // Cheap first: most nodes that leave a job are no spares, and munge is asked for a plan.
    const std::string line = job.admin_comment ? job.admin_comment : "";
    const auto told = train::parse_admin_comment(line);
    if (!told || std::find(told->spares.begin(), told->spares.end(), node.name) == told->spares.end()) return;
    auto plan = stored_plan(job);
    if (!plan) return;
    const auto at = std::find(plan->spares.begin(), plan->spares.end(), node.name);
    if (at != plan->spares.end()) {
        if (!plan->spare_addrs.empty())
            plan->spare_addrs.erase(plan->spare_addrs.begin() + (at - plan->spares.begin()));
        plan->spares.erase(at);
        ++plan->generation;
    }
    const auto ours = train::with_spares(split_admin_comment(line).line, plan->spares);
    store_plan(job, std::move(*plan), ours);
}

}  // namespace banyan::slurm
