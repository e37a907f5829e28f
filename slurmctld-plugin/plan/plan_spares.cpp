// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/plan/plan_spares.hpp"

#include <algorithm>
#include <utility>

#include "slurmctld-plugin/plan/job_plan.hpp"

namespace banyan::slurm {

void forget_spare(job_record_t& job, const node_record_t& node) {
    auto plan = stored_plan(job);
    if (!plan) return;
    const auto at = std::find(plan->spares.begin(), plan->spares.end(), node.name);
    if (at == plan->spares.end()) return;  // as most nodes that leave a job
    if (!plan->spare_addrs.empty())
        plan->spare_addrs.erase(plan->spare_addrs.begin() + (at - plan->spares.begin()));
    plan->spares.erase(at);
    ++plan->generation;
    store_plan(job, std::move(*plan));
}

}  // namespace banyan::slurm
