// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/step_order.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "train/step_numbers.hpp"

namespace banyan::slurm {
namespace {

/// The step's nodes in the order of its layout.
std::vector<std::string> names_of(const slurm_step_layout_t& layout) {
    std::vector<std::string> out;
    const hostlist_ptr names = hostlist_create(layout.node_list);
    if (!names) return out;
    while (char* name = hostlist_shift(names)) {
        out.emplace_back(name);
        ::free(name);
    }
    hostlist_destroy(names);
    return out;
}

/// mpi/pmi2 tells the ranks which of them share a node. It takes that from the name of the distribution, and
/// from the task ids themselves only for the two names under which they may be in any order.
void name_order(slurm_step_layout_t& layout) {
    if ((layout.task_dist & SLURM_DIST_NODEMASK) != SLURM_DIST_NODECYCLIC)
        layout.task_dist = (layout.task_dist & SLURM_DIST_STATE_FLAGS) | SLURM_DIST_PLANE;
}

/// `nodes`: those of the layout, in its order. As it was where `node_of_slot` lacks one of them.
void give_ranks(slurm_step_layout_t& layout, const topo::request& request,
                const std::vector<std::string>& nodes, const std::vector<std::string>& node_of_slot) {
    std::unordered_map<std::string_view, std::size_t> slot_of;
    for (std::size_t slot = 0; slot < node_of_slot.size(); ++slot) slot_of[node_of_slot[slot]] = slot;
    if (nodes.size() != layout.node_cnt ||
        !std::ranges::all_of(nodes, [&](const auto& node) { return slot_of.contains(node); }))
        return;
    const auto tasks = train::tasks_of_slots(request, request.launchers);
    for (std::size_t i = 0; i < nodes.size(); ++i)
        std::ranges::copy(tasks[slot_of.at(nodes[i])], layout.tids[i]);
    name_order(layout);
}

bool even(const slurm_step_layout_t& layout, std::uint32_t per_node) {
    return std::all_of(layout.tasks, layout.tasks + layout.node_cnt, [&](auto n) { return n == per_node; });
}

}  // namespace

void order_step(step_record_t& step) {
    const auto* layout = step.step_layout;
    if (!layout || !layout->tids || !step.job_ptr || step.step_id.step_id >= SLURM_MAX_NORMAL_STEP_ID) return;
    const auto& job = *step.job_ptr;
    if (!is_for_one_step(job)) return;
    const auto asked = request_of(job);
    const auto plan = stored_plan(job);
    if (!asked || !*asked || !plan) return;
    const auto& request = (*asked)->placement;
    if (layout->node_cnt == request.nodes && plan->nodes.size() == request.nodes &&
        even(*layout, request.tasks_per_node()))
        give_ranks(*step.step_layout, request, names_of(*layout), plan->nodes);
}

}  // namespace banyan::slurm
