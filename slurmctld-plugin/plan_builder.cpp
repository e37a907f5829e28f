// SPDX-License-Identifier: GPL-2.0-or-later
#include "plan_builder.hpp"

#include "job_plan.hpp"

namespace banyan::slurm {
namespace {

void add_nodes(std::vector<std::string>& names, std::vector<std::string>& addresses,
               const std::vector<std::uint32_t>& hosts, const fabric_cache::view& fabric,
               const controller& ctld) {
    for (const auto host : hosts) {
        names.push_back(fabric.fabric.hosts[host].name);
        const int node = fabric.node_of_host[host];
        const char* address = node >= 0 ? ctld.node(node)->comm_name : nullptr;
        addresses.emplace_back(address ? address : names.back());
    }
}

}  // namespace

void save_placement(job_record_t& job, const fabric_cache::view& fabric, const controller& ctld,
                    const topo::request& request, const topo::placement& placement,
                    std::optional<train::better_later> later) {
    train::plan plan;
    const auto before = stored_plan(job);
    if (!later && before && before->restart == job.restart_cnt && job.admin_comment)
        if (const auto line = train::parse_admin_comment(job.admin_comment)) later = line->later;
    plan.generation = before ? before->generation + 1 : 1;
    plan.restart = job.restart_cnt;
    plan.shape = request.dims.text();
    plan.ranks_per_node = request.ranks_per_node;
    plan.buddies = placement.buddies;
    add_nodes(plan.nodes, plan.addrs, placement.nodes, fabric, ctld);
    add_nodes(plan.spares, plan.spare_addrs, placement.spares, fabric, ctld);
    store_plan(job, plan,
               train::admin_comment(request, topo::spread_of(fabric.fabric, request, placement), plan.spares,
                                    later));
}

}  // namespace banyan::slurm
