// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/step_order.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "slurmctld-plugin/fabric/fabric_cache.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "train/min_dp.hpp"
#include "train/supervised.hpp"

namespace banyan::slurm {
namespace {

/// The step's nodes in the order of its layout.
std::vector<std::string> names_of(const slurm_step_layout_t& layout) {
    std::vector<std::string> out;
    hostlist_t names = hostlist_create(layout.node_list);
    if (!names) return out;
    while (char* name = hostlist_shift(names)) {
        out.emplace_back(name);
        ::free(name);
    }
    hostlist_destroy(names);
    return out;
}

/// The task ids of each slot: its ranks, or its number where the tasks are launchers.
std::vector<std::vector<std::uint32_t>> tasks_of_slots(const topo::request& request, bool launchers) {
    if (!launchers) return topo::ranks_of_slots(request);
    std::vector<std::vector<std::uint32_t>> out;
    for (std::uint32_t slot = 0; slot < request.nodes; ++slot) out.push_back({slot});
    return out;
}

/// mpi/pmi2 tells the ranks which of them share a node. It takes that from the name of the distribution, and
/// from the task ids themselves only for the two names under which they may be in any order.
void name_order(slurm_step_layout_t& layout) {
    if ((layout.task_dist & SLURM_DIST_NODEMASK) != SLURM_DIST_NODECYCLIC)
        layout.task_dist = (layout.task_dist & SLURM_DIST_STATE_FLAGS) | SLURM_DIST_PLANE;
}

/// Gives each node of the layout the ranks of its slot. False, and the layout as it was, when one has none.
template <class Node>
bool give_ranks(slurm_step_layout_t& layout, const topo::request& request, const std::vector<Node>& nodes,
                const std::vector<Node>& node_of_slot, bool launchers) {
    std::unordered_map<Node, std::size_t> slot_of;
    for (std::size_t slot = 0; slot < node_of_slot.size(); ++slot) slot_of[node_of_slot[slot]] = slot;
    for (const auto& node : nodes)
        if (!slot_of.contains(node)) return false;
    const auto tasks = tasks_of_slots(request, launchers);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        std::copy(tasks[slot_of[nodes[i]]].begin(), tasks[slot_of[nodes[i]]].end(), layout.tids[i]);
    name_order(layout);
    return true;
}

bool even(const slurm_step_layout_t& layout, std::uint32_t per_node) {
    return std::all_of(layout.tasks, layout.tasks + layout.node_cnt, [&](auto n) { return n == per_node; });
}

/// The nodes of the slots of `planned` on exactly those of the step, where no fabric tells which of them are
/// near: as on a fabric without hosts, by numbers that stand for the names.
std::vector<std::string> without_fabric(const std::vector<std::string>& planned,
                                        const std::vector<std::string>& step) {
    std::vector<std::string> names;
    std::unordered_map<std::string, std::uint32_t> known;
    const auto numbers_of = [&](const std::vector<std::string>& some) {
        std::vector<std::uint32_t> out;
        for (const auto& name : some) {
            const auto [at, fresh] = known.try_emplace(name, static_cast<std::uint32_t>(names.size()));
            if (fresh) names.push_back(name);
            out.push_back(at->second);
        }
        return out;
    };
    topo::placement before;
    before.nodes = numbers_of(planned);
    const auto after = topo::swap_onto({}, before, numbers_of(step));
    if (!after) return planned;
    std::vector<std::string> out;
    for (const auto number : after->nodes) out.push_back(names[number]);
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

/// The placement for exactly `hosts`: that of the plan, with the nodes that the step lacks replaced by those
/// that are new in it.
result<topo::placement> placement_for(const std::optional<train::plan>& plan,
                                      const fabric_cache::view& fabric, const ctld_tables& ctld,
                                      const topo::request& request, const std::vector<std::uint32_t>& hosts) {
    if (!plan || plan->nodes.size() != request.nodes || plan->shape != request.dims.text())
        return topo::arrange(fabric.fabric, hosts, request);
    return topo::swap_onto(fabric.fabric, placement_of(*plan, fabric, ctld), hosts);
}

/// The order of a job that runs does not depend on a snapshot that has gone, is too old, or lacks one of the
/// job's nodes since.
void order_by_plan(job_record_t& job, const std::optional<train::plan>& plan, const ctld_tables& ctld,
                   slurm_step_layout_t& layout, const topo::request& request,
                   const std::vector<std::string>& names, bool launchers) {
    if (plan && plan->nodes.size() == names.size() && plan->shape == request.dims.text()) {
        const auto nodes = without_fabric(plan->nodes, names);
        if (give_ranks(layout, request, names, nodes, launchers)) return save_nodes(job, ctld, *plan, nodes);
    }
    log_job_once(job.job_id,
                 "its nodes are not in a fabric snapshot; the ranks of its step stay in Slurm's order");
}

/// The numbers of the training on the nodes that the job has left: all of it, or what --train-min-dp allows.
topo::request request_now(const job_record_t& job, const job_request& asked) {
    if (asked.min_nodes == 0 || !job.node_bitmap) return asked.placement;
    const auto left = static_cast<std::uint32_t>(bit_set_count(job.node_bitmap));
    return train::request_on(asked.placement, asked.min_nodes, left).value_or(asked.placement);
}

/// Whether the plan and the step are not both of all slots: then no fabric is asked which node comes in
/// where.
bool changes_size(const std::optional<train::plan>& plan, const topo::request& full,
                  const topo::request& now) {
    return plan && plan->min_nodes != 0 && plan->shape == full.dims.text() &&
           (now.nodes != full.nodes || plan->nodes.size() != full.nodes);
}

/// False: the step is not the training.
bool order_ranks(step_record_t& step) {
    auto* layout = step.step_layout;
    if (!layout || !layout->tids || !step.job_ptr || step.step_id.step_id >= SLURM_MAX_NORMAL_STEP_ID)
        return false;
    // A debugger's step beside the training, whatever its size; a part of a step.
    if ((step.flags & SSF_OVERLAP_FORCE) || step.step_id.step_het_comp != NO_VAL) return false;
    auto& job = *step.job_ptr;
    const auto asked = request_of(job);
    if (!asked || !*asked) return false;
    const auto& full = (*asked)->placement;
    const auto request = request_now(job, **asked);
    const bool launchers = request.launchers && layout->task_cnt == request.nodes;
    if ((!launchers && layout->task_cnt != request.dims.ranks()) || layout->node_cnt != request.nodes ||
        !even(*layout, launchers ? 1 : request.ranks_per_node))
        return false;
    const auto names = names_of(*layout);
    if (names.size() != layout->node_cnt) return false;
    const auto* ctld = ctld_tables::get();
    if (!ctld) return false;
    const auto* fabric = fabric_cache::instance().get(*ctld);
    const auto hosts =
        fabric ? fabric->map.known_hosts_of(ctld->find_nodes(names)) : std::vector<std::uint32_t>{};
    const auto plan = stored_plan(job);
    if (changes_size(plan, full, request)) {
        const auto nodes = train::keep_nodes(plan->nodes, names);
        if (give_ranks(*layout, request, names, nodes, launchers)) save_nodes(job, *ctld, *plan, nodes);
        return true;
    }
    // Without a plan its numbers tell nobody that the step is one of fewer groups.
    if (request.nodes != full.nodes) return false;
    if (hosts.size() != layout->node_cnt) {
        order_by_plan(job, plan, *ctld, *layout, request, names, launchers);
        return true;
    }
    const auto placement = placement_for(plan, *fabric, *ctld, request, hosts);
    if (!placement) {
        log_job_once(job.job_id, placement.error().text() + "; its ranks stay in Slurm's order");
        return true;
    }
    if (give_ranks(*layout, request, hosts, placement->nodes, launchers))
        save_placement(job, plan, *fabric, *ctld, request, *placement);
    return true;
}

}  // namespace

void order_step(step_record_t& step) {
    if (order_ranks(step))
        note_supervised(*step.job_ptr, train::starts_again(step.submit_line ? step.submit_line : ""));
}

}  // namespace banyan::slurm
