// SPDX-License-Identifier: GPL-2.0-or-later
#include "step_order.hpp"

#include <algorithm>
#include <unordered_map>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "fabric_cache.hpp"
#include "job_view.hpp"
#include "notice.hpp"
#include "plan_builder.hpp"

namespace banyan::slurm {
namespace {

/// The step's nodes in the order of its layout, as host indices; empty when one of them is not on the fabric.
std::vector<std::uint32_t> layout_hosts(const slurm_step_layout_t& layout, const fabric_cache::view& fabric,
                                        const controller& ctld) {
    std::vector<std::uint32_t> hosts;
    hostlist_t names = hostlist_create(layout.node_list);
    if (!names) return hosts;
    while (char* name = hostlist_shift(names)) {
        const int node = ctld.find_node(name);
        ::free(name);
        const auto host =
            node < 0 ? fabric_cache::no_host : fabric.host_of_node[static_cast<std::size_t>(node)];
        if (host == fabric_cache::no_host) {
            hosts.clear();
            break;
        }
        hosts.push_back(host);
    }
    hostlist_destroy(names);
    return hosts;
}

bool even(const slurm_step_layout_t& layout, std::uint32_t per_node) {
    return std::all_of(layout.tasks, layout.tasks + layout.node_cnt, [&](auto n) { return n == per_node; });
}

topo::placement placement_of(const topo::plan& plan, const fabric_cache::view& fabric,
                             const controller& ctld) {
    topo::placement out;
    const auto add = [&](std::vector<std::uint32_t>& to, const std::vector<std::string>& names) {
        for (const auto& name : names) {
            const int node = ctld.find_node(name.c_str());
            to.push_back(node < 0 ? fabric_cache::no_host
                                  : fabric.host_of_node[static_cast<std::size_t>(node)]);
        }
    };
    add(out.nodes, plan.nodes);
    add(out.spares, plan.spares);
    out.buddies = plan.buddies;
    return out;
}

/// The placement for exactly `hosts`: the job's plan, with the nodes that the step lacks replaced by those
/// that are new in it.
result<topo::placement> placement_for(const job_record_t& job, const fabric_cache::view& fabric,
                                      const controller& ctld, const topo::request& request,
                                      const std::vector<std::uint32_t>& hosts) {
    const auto plan = stored_plan(job);
    if (!plan || plan->nodes.size() != request.nodes || plan->shape != request.dims.text())
        return topo::arrange(fabric.fabric, hosts, request);
    auto before = placement_of(*plan, fabric, ctld);
    const auto in_step = [&](std::uint32_t host) {
        return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
    };
    const auto in_plan = [&](std::uint32_t host) {
        return std::find(before.nodes.begin(), before.nodes.end(), host) != before.nodes.end();
    };
    std::vector<std::uint32_t> lost, fresh;
    std::copy_if(before.nodes.begin(), before.nodes.end(), std::back_inserter(lost),
                 [&](auto h) { return !in_step(h); });
    std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(fresh), [&](auto h) { return !in_plan(h); });
    if (lost.empty()) return before;
    return topo::swap(fabric.fabric, before, lost, fresh);
}

}  // namespace

void order_step(step_record_t& step) {
    auto* layout = step.step_layout;
    if (!layout || !layout->tids || !step.job_ptr || step.step_id.step_id >= SLURM_MAX_NORMAL_STEP_ID) return;
    auto& job = *step.job_ptr;
    const auto request = request_of(job);
    if (!request || !*request) return;
    if (layout->task_cnt != (*request)->dims.ranks() || layout->node_cnt != (*request)->nodes ||
        !even(*layout, (*request)->ranks_per_node))
        return;
    const auto* ctld = controller::get();
    const auto* fabric = ctld ? fabric_cache::instance().get(*ctld) : nullptr;
    if (!fabric) return;

    const auto hosts = layout_hosts(*layout, *fabric, *ctld);
    if (hosts.size() != layout->node_cnt) return;
    const auto placement = placement_for(job, *fabric, *ctld, **request, hosts);
    if (!placement) {
        log_job_once(job.job_id, placement.error().text() + "; its ranks stay in Slurm's order");
        return;
    }
    const auto ranks = topo::ranks_of_slots(**request);
    std::unordered_map<std::uint32_t, std::size_t> slot_of;
    for (std::size_t slot = 0; slot < placement->nodes.size(); ++slot) slot_of[placement->nodes[slot]] = slot;
    for (const auto host : hosts)
        if (!slot_of.contains(host)) return;  // a bug in placement must not lose a task: leave Slurm's order
    for (std::size_t i = 0; i < hosts.size(); ++i)
        std::copy(ranks[slot_of[hosts[i]]].begin(), ranks[slot_of[hosts[i]]].end(), layout->tids[i]);
    save_placement(job, *fabric, *ctld, **request, *placement);
}

}  // namespace banyan::slurm
