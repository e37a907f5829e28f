// SPDX-License-Identifier: BSD-3-Clause
#include "fault/slurm/step_ranks.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "common/text.hpp"
#include "train/slurm/libslurm.hpp"

namespace banyan::fault {

result<node_ranks> ranks_in(std::uint32_t job, const step_status& step, const train::plan_summary& plan,
                            const std::string& node) {
    auto which = libslurm::step_id(job, step.id, step.component);
    const std::unique_ptr<slurm_step_layout_t, void (*)(slurm_step_layout_t*)> layout(
        slurm_job_step_layout_get(&which), slurm_job_step_layout_free);
    if (!layout)
        return fail(errc::unavailable, fmt::format("cannot read the layout of step {}.{}: {}", job, step.id,
                                                   slurm_strerror(libslurm::last_error())));
    const auto none = [&](const char* why) {
        return fail(errc::not_found, fmt::format("step {}.{} {}", job, step.id, why));
    };
    // Of a job that goes on with fewer groups of ranks, all on the nodes that it has.
    const bool fewer = plan.min_nodes != 0 && layout->node_cnt >= plan.min_nodes;
    const auto of = layout->node_cnt * plan.ranks_per_node;
    if ((layout->node_cnt != plan.nodes && !(fewer && layout->node_cnt < plan.nodes)) ||
        layout->task_cnt != (plan.launchers ? layout->node_cnt : of) || !layout->tasks || !layout->tids)
        return none("is none of the training");
    BANYAN_TRY(const auto names, expand_hostlist(layout->node_list ? layout->node_list : ""));
    const auto at = static_cast<std::size_t>(std::ranges::find(names, node) - names.begin());
    if (at >= names.size() || at >= layout->node_cnt || !layout->tids[at]) return none("has no task there");
    node_ranks out;
    out.step = step.id;
    out.of = of;
    // A launcher numbers its ranks one after the other, in the order of the nodes: see docs/launchers.md.
    const std::uint32_t each = plan.launchers ? plan.ranks_per_node : 1;
    for (std::uint16_t t = 0; t < layout->tasks[at]; ++t)
        for (std::uint32_t r = 0; r < each; ++r) out.ranks.push_back(layout->tids[at][t] * each + r);
    std::ranges::sort(out.ranks);
    if (out.ranks.empty()) return none("has no task there");
    return out;
}

}  // namespace banyan::fault
