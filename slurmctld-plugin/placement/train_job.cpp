// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/train_job.hpp"

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"

namespace banyan::slurm {
std::vector<std::uint32_t> train_job::free_now(const bitstr_t* candidates) const {
    return fabric.map.hosts_where(
        [&](int node) { return is_set(candidates, node) && is_set(ctld.idle_nodes(), node); });
}

std::vector<std::uint32_t> train_job::free_at(const bitstr_t* candidates, std::time_t time) const {
    const bitmap free(bit_copy(const_cast<bitstr_t*>(candidates)));
    if (!holders) {
        // There may be 100,000 jobs in the list, most of them pending or done.
        holders.emplace();
        for (const auto* other : entries<job_record_t>(ctld.jobs()))
            if ((IS_JOB_RUNNING(other) || IS_JOB_SUSPENDED(other)) && other->node_bitmap)
                holders->push_back({other->end_time, other->node_bitmap});
    }
    for (const auto& other : *holders)
        if (other.end > time) bit_and_not(free.get(), other.nodes);
    return fabric.map.hosts_where([&](int node) { return is_set(free.get(), node); });
}

const topo::placement* train_job::last() const {
    if (!before) {
        before.emplace();
        // A plan of thousands of nodes takes milliseconds to read.
        const auto plan = record.restart_cnt > 0 ? stored_plan(record) : std::nullopt;
        const auto known = [&](const std::vector<std::string>& names) {
            return fabric.map.known_hosts_of(ctld.find_nodes(names));
        };
        if (plan && plan->restart < record.restart_cnt)
            *before = topo::placement{known(plan->nodes), known(plan->spares), plan->buddies};
    }
    return *before ? &**before : nullptr;
}

}  // namespace banyan::slurm
