// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/train_job.hpp"

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"

namespace banyan::slurm {
namespace {

/// Those of `fabric` for whose node `wanted` is true.
template <class Wanted>
std::vector<std::uint32_t> hosts_where(const fabric_cache::view& fabric, Wanted wanted) {
    std::vector<std::uint32_t> hosts;
    for (std::size_t host = 0; host < fabric.node_of_host.size(); ++host)
        if (const int node = fabric.node_of_host[host]; node >= 0 && wanted(node))
            hosts.push_back(static_cast<std::uint32_t>(host));
    return hosts;
}

}  // namespace

std::vector<std::uint32_t> train_job::free_now(const bitstr_t* candidates) const {
    return hosts_where(fabric,
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
    return hosts_where(fabric, [&](int node) { return is_set(free.get(), node); });
}

std::vector<std::uint32_t> train_job::hosts_of(const std::vector<std::string>& names) const {
    std::vector<std::uint32_t> hosts;
    for (const auto& name : names) {
        const int node = ctld.find_node(name.c_str());
        if (node < 0) continue;
        const auto host = fabric.host_of_node[static_cast<std::size_t>(node)];
        if (host != fabric_cache::no_host) hosts.push_back(host);
    }
    return hosts;
}

const last_run* train_job::last() const {
    if (!before) {
        before.emplace();
        // A plan of thousands of nodes takes milliseconds to read.
        const auto plan = record.restart_cnt > 0 ? stored_plan(record) : std::nullopt;
        if (plan && plan->restart < record.restart_cnt)
            *before = last_run{hosts_of(plan->nodes), hosts_of(plan->spares), plan->buddies};
    }
    return *before ? &**before : nullptr;
}

std::vector<std::uint32_t> train_job::hosts_of(const bitstr_t* chosen) const {
    std::vector<std::uint32_t> hosts;
    for (std::size_t node = 0; node < fabric.host_of_node.size(); ++node) {
        if (!is_set(chosen, static_cast<int>(node))) continue;
        if (fabric.host_of_node[node] == fabric_cache::no_host) return {};
        hosts.push_back(fabric.host_of_node[node]);
    }
    return hosts;
}

}  // namespace banyan::slurm
