// SPDX-License-Identifier: GPL-2.0-or-later
#include "train_job.hpp"

#include "job_nodes.hpp"

namespace banyan::slurm {
namespace {

bool test(const bitstr_t* b, int node) { return bit_test(const_cast<bitstr_t*>(b), node); }

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
                       [&](int node) { return test(candidates, node) && test(ctld.idle_nodes(), node); });
}

std::vector<std::uint32_t> train_job::free_at(const bitstr_t* candidates, std::time_t time) const {
    const bitmap free(bit_copy(const_cast<bitstr_t*>(candidates)));
    for (const auto* other : entries<job_record_t>(ctld.jobs())) {
        const bool holds = IS_JOB_RUNNING(other) || IS_JOB_SUSPENDED(other);
        if (holds && other->end_time > time && other->node_bitmap)
            bit_and_not(free.get(), other->node_bitmap);
    }
    return hosts_where(fabric, [&](int node) { return test(free.get(), node); });
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

std::vector<std::uint32_t> train_job::hosts_of(const bitstr_t* chosen) const {
    std::vector<std::uint32_t> hosts;
    for (std::size_t node = 0; node < fabric.host_of_node.size(); ++node) {
        if (!test(chosen, static_cast<int>(node))) continue;
        if (fabric.host_of_node[node] == fabric_cache::no_host) return {};
        hosts.push_back(fabric.host_of_node[node]);
    }
    return hosts;
}

}  // namespace banyan::slurm
