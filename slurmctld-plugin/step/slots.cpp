// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/slots.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <banyan/topo/placement.hpp>

#include "slurmctld-plugin/fabric/fabric_cache.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "train/min_dp.hpp"

namespace banyan::slurm {
namespace {

using names = std::vector<std::string>;

/// The nodes of the slots of `planned` on exactly those of the step, where no fabric tells which of them are
/// near: as on a fabric without hosts, by numbers that stand for the names.
names without_fabric(const names& planned, const names& step) {
    names all;
    std::unordered_map<std::string, std::uint32_t> known;
    const auto numbers_of = [&](const names& some) {
        std::vector<std::uint32_t> out;
        for (const auto& name : some) {
            const auto [at, fresh] = known.try_emplace(name, static_cast<std::uint32_t>(all.size()));
            if (fresh) all.push_back(name);
            out.push_back(at->second);
        }
        return out;
    };
    topo::placement before;
    before.nodes = numbers_of(planned);
    const auto after = topo::swap_onto({}, before, numbers_of(step));
    if (!after) return planned;
    names out;
    for (const auto number : after->nodes) out.push_back(all[number]);
    return out;
}

topo::placement placement_of(const train::plan& plan, const fabric_cache::view& fabric,
                             const ctld_tables& ctld) {
    topo::placement out;
    out.nodes = fabric.map.hosts_of(ctld.find_nodes(plan.nodes));
    // A spare that the fabric no longer has is no host; save_placement knows it by its name.
    out.spares = fabric.map.known_hosts_of(ctld.find_nodes(plan.spares));
    out.buddies = plan.buddies;
    return out;
}

/// The placement for exactly `hosts`: that of the plan, with the nodes that are gone replaced by those that
/// are new.
result<topo::placement> placement_for(const std::optional<train::plan>& plan,
                                      const fabric_cache::view& fabric, const ctld_tables& ctld,
                                      const topo::request& request, const std::vector<std::uint32_t>& hosts) {
    if (!plan || plan->nodes.size() != request.nodes || plan->shape != request.dims.text())
        return topo::arrange(fabric.fabric, hosts, request);
    return topo::swap_onto(fabric.fabric, placement_of(*plan, fabric, ctld), hosts);
}

/// The order of a job that runs does not depend on a snapshot that has gone, is too old, or lacks one of the
/// job's nodes since.
names by_plan(job_record_t& job, const std::optional<train::plan>& plan, const ctld_tables& ctld,
              const topo::request& request, const names& step) {
    if (plan && plan->nodes.size() == step.size() && plan->shape == request.dims.text()) {
        auto nodes = without_fabric(plan->nodes, step);
        save_nodes(job, ctld, *plan, nodes);
        return nodes;
    }
    log_job_once(job.job_id,
                 "its nodes are not in a fabric snapshot; the ranks of its step stay in Slurm's order");
    return {};
}

/// Whether the plan and the nodes are not both of all slots: then no fabric is asked which node comes in
/// where.
bool changes_size(const std::optional<train::plan>& plan, const topo::request& full,
                  const topo::request& now) {
    return plan && plan->min_nodes != 0 && plan->shape == full.dims.text() &&
           (now.nodes != full.nodes || plan->nodes.size() != full.nodes);
}

}  // namespace

topo::request request_now(const job_record_t& job, const job_request& asked) {
    if (asked.min_nodes == 0 || !job.node_bitmap) return asked.placement;
    const auto left = static_cast<std::uint32_t>(bit_set_count(job.node_bitmap));
    return train::request_on(asked.placement, asked.min_nodes, left).value_or(asked.placement);
}

names settle_slots(job_record_t& job, const job_request& asked, const topo::request& request,
                   const names& step) {
    const auto* ctld = ctld_tables::get();
    if (!ctld) return {};
    const auto plan = stored_plan(job);
    if (changes_size(plan, asked.placement, request)) {
        auto nodes = train::keep_nodes(plan->nodes, step);
        save_nodes(job, *ctld, *plan, nodes);
        return nodes;
    }
    // Without a plan its numbers tell nobody that the step is one of fewer groups.
    if (request.nodes != asked.placement.nodes) return {};
    const auto* fabric = fabric_cache::instance().get(*ctld);
    const auto hosts =
        fabric ? fabric->map.known_hosts_of(ctld->find_nodes(step)) : std::vector<std::uint32_t>{};
    if (hosts.size() != step.size()) return by_plan(job, plan, *ctld, request, step);
    const auto placement = placement_for(plan, *fabric, *ctld, request, hosts);
    if (!placement) {
        log_job_once(job.job_id, placement.error().text() + "; its ranks stay in Slurm's order");
        return {};
    }
    save_placement(job, plan, *fabric, *ctld, request, *placement);
    names out;
    for (const auto host : placement->nodes) out.push_back(fabric->fabric.hosts[host].name);
    return out;
}

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
    if (left.size() == request.nodes && left != plan->nodes) settle_slots(job, **asked, request, left);
}

}  // namespace banyan::slurm
