// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/slots.hpp"

#include <algorithm>
#include <optional>

#include <banyan/topo/placement.hpp>

#include "slurmctld-plugin/fabric/fabric_cache.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "train/min_dp.hpp"

namespace banyan::slurm {
namespace {

using names = std::vector<std::string>;

topo::placement placement_of(const train::plan& plan, const fabric_cache::view& fabric,
                             const ctld_tables& ctld) {
    topo::placement out;
    out.nodes = fabric.map.hosts_of(ctld.find_nodes(plan.nodes));
    // A spare that the fabric no longer has is no host; save_placement knows it by its name.
    out.spares = fabric.map.known_hosts_of(ctld.find_nodes(plan.spares));
    out.buddies = plan.buddies;
    return out;
}

/// The fabric says which node comes in where, if it has them all. Nobody asks it for a training that has, or
/// had, fewer slots than the job asked for.
void move_slots(job_record_t& job, const ctld_tables& ctld, const train::plan& plan, const job_request& asked,
                const topo::request& now, const names& nodes) {
    const bool all = now.nodes == asked.placement.nodes && plan.nodes.size() == now.nodes;
    const auto* fabric = all ? fabric_cache::instance().get(ctld) : nullptr;
    const auto hosts =
        fabric ? fabric->map.known_hosts_of(ctld.find_nodes(nodes)) : std::vector<std::uint32_t>{};
    if (hosts.size() == nodes.size())
        if (const auto placement = topo::swap_onto(fabric->fabric, placement_of(plan, *fabric, ctld), hosts))
            return save_placement(job, plan, *fabric, ctld, now, *placement);
    save_nodes(job, ctld, plan, train::keep_nodes(plan.nodes, nodes));
}

/// The numbers of the training on the nodes that the job has left: all of it, or what --train-min-dp allows.
topo::request request_now(const job_record_t& job, const job_request& asked) {
    if (asked.min_nodes == 0) return asked.placement;
    const auto left = static_cast<std::uint32_t>(bit_set_count(job.node_bitmap));
    return train::request_on(asked.placement, asked.min_nodes, left).value_or(asked.placement);
}

}  // namespace

void order_own_step(job_record_t& job) {
    const auto* ctld = ctld_tables::get();
    if (!ctld || !is_for_one_step(job) || !job.job_resrcs || !job.job_resrcs->node_bitmap) return;
    const auto plan = stored_plan(job);
    if (!plan) return;
    const auto slots = ctld->find_nodes(plan->nodes);
    std::vector<std::uint32_t> places;
    for (const int node : set_bits(job.job_resrcs->node_bitmap))
        places.push_back(static_cast<std::uint32_t>(std::ranges::find(slots, node) - slots.begin()));
    order_nodes(job, places);
}

void follow_nodes(job_record_t& job) {
    const auto asked = request_of(job);
    const auto plan = stored_plan(job);
    const auto* ctld = ctld_tables::get();
    if (!asked || !*asked || !plan || !ctld || !job.node_bitmap) return;
    const auto request = request_now(job, **asked);
    names left;
    for (const auto* some : {&plan->nodes, &plan->spares})
        for (const auto& name : *some)
            if (const int node = ctld->find_node(name);
                left.size() < request.nodes && node >= 0 && is_set(job.node_bitmap, node))
                left.push_back(name);
    if (left.size() == request.nodes && left != plan->nodes)
        move_slots(job, *ctld, *plan, **asked, request, left);
}

}  // namespace banyan::slurm
