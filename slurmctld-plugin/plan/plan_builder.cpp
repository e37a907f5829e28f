// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/plan/plan_builder.hpp"

#include <string>
#include <unordered_set>
#include <utility>

#include "slurmctld-plugin/plan/job_plan.hpp"
#include "train/admin_comment.hpp"

namespace banyan::slurm {
namespace {

void add_nodes(std::vector<std::string>& names, std::vector<std::string>& addresses,
               const std::vector<std::uint32_t>& hosts, const fabric_cache::view& fabric,
               const ctld_tables& ctld) {
    for (const auto host : hosts) {
        names.push_back(fabric.fabric.hosts[host].name);
        addresses.push_back(ctld.address_of(names.back()));
    }
}

/// Every other node of the job waits as a spare, behind those that the plan has: one that its step leaves
/// out, one that the fabric lacks, and all of them where the job had no plan.
void add_others(train::plan& plan, const job_record_t& job, const ctld_tables& ctld) {
    const job_record_t* started = &job;
    if (!job.node_bitmap || IS_JOB_PENDING(started))
        return;  // what it may still have are nodes of its last run
    std::unordered_set<std::string> known(plan.nodes.begin(), plan.nodes.end());
    known.insert(plan.spares.begin(), plan.spares.end());
    for (const int node : set_bits(job.node_bitmap))
        if (known.insert(ctld.node(node)->name).second) {
            plan.spares.emplace_back(ctld.node(node)->name);
            plan.spare_addrs.push_back(ctld.address_of(plan.spares.back()));
        }
}

}  // namespace

void save_placement(job_record_t& job, const fabric_cache::view& fabric, const ctld_tables& ctld,
                    const topo::request& request, const topo::placement& placement,
                    std::optional<train::better_later> later) {
    train::plan plan;
    const auto before = stored_plan(job);
    if (!later && before && before->restart == job.restart_cnt) later = before->later;
    plan.generation = before ? before->generation + 1 : 1;
    plan.restart = job.restart_cnt;
    plan.shape = request.dims.text();
    plan.ranks_per_node = request.ranks_per_node;
    plan.launchers = request.launchers;
    plan.buddies = placement.buddies;
    plan.model = request.model;
    plan.later = later;
    plan.spread = train::spread_in_words(request, topo::spread_of(fabric.fabric, request, placement));
    add_nodes(plan.nodes, plan.addrs, placement.nodes, fabric, ctld);
    add_nodes(plan.spares, plan.spare_addrs, placement.spares, fabric, ctld);
    add_others(plan, job, ctld);
    store_plan(job, std::move(plan));
}

void save_nodes(job_record_t& job, const ctld_tables& ctld, train::plan plan,
                const std::vector<std::string>& nodes) {
    if (plan.nodes == nodes) return;
    const auto spares = std::move(plan.spares);
    plan.nodes = nodes;
    for (auto* names : {&plan.addrs, &plan.spares, &plan.spare_addrs}) names->clear();
    for (const auto& name : nodes) plan.addrs.push_back(ctld.address_of(name));
    const std::unordered_set<std::string> used(nodes.begin(), nodes.end());
    for (const auto& name : spares)
        if (!used.contains(name)) {
            plan.spares.push_back(name);
            plan.spare_addrs.push_back(ctld.address_of(name));
        }
    add_others(plan, job, ctld);
    ++plan.generation;
    plan.spread.clear();  // that of other nodes
    store_plan(job, std::move(plan));
}

}  // namespace banyan::slurm
