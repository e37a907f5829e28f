// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/growth/job_growth.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "slurmctld-plugin/growth/allocation_move.hpp"
#include "slurmctld-plugin/growth/gres_move.hpp"
#include "slurmctld-plugin/growth/growth_rules.hpp"
#include "slurmctld-plugin/notice.hpp"

namespace banyan::slurm {

int grow_job(job_record_t& donor, job_record_t& job, const std::function<int()>& expand) {
    const auto* ctld = ctld_tables::get();
    auto obstacle = growth_obstacle(donor, job);
    if (obstacle.empty() && (!ctld || !can_move_allocation(donor, *ctld) || !can_move_allocation(job, *ctld)))
        obstacle = "select/cons_tres is not in the state that banyan knows";
    if (!obstacle.empty()) {
        if (has_gres(donor) || has_gres(job))
            log_error(fmt::format("JobId={} cannot grow by the nodes of JobId={}: {}", job.job_id,
                                  donor.job_id, obstacle));
        return expand();
    }
    const bitmap after(bit_copy(job.job_resrcs->node_bitmap));
    bit_or(after.get(), donor.job_resrcs->node_bitmap);
    const auto nodes = origins(job.job_resrcs->node_bitmap, donor.job_resrcs->node_bitmap, after.get());
    const auto mine = entries<gres_state_t>(job.gres_list_alloc);
    const auto theirs = entries<gres_state_t>(donor.gres_list_alloc);
    move_allocation(donor, job, nodes, *ctld);
    for (auto* entry : mine)
        for (auto* other : theirs)
            if (same_kind(entry, other)) take_over(state_of(entry), state_of(other), nodes);
    follow_allocation(job.gres_list_req, job.gres_list_alloc, static_cast<std::uint32_t>(nodes.size()));
    reorder_step_counts(job, nodes);
    gres_ctld_job_build_details(job.gres_list_alloc, &job.gres_detail_cnt, &job.gres_detail_str,
                                &job.gres_used);
    // The donor ends with nothing, and must not tell its epilog otherwise.
    FREE_NULL_LIST(donor.gres_list_alloc);
    FREE_NULL_LIST(donor.gres_list_req);
    log_info(fmt::format("JobId={} grew by the nodes of JobId={} to {} nodes", job.job_id, donor.job_id,
                         nodes.size()));
    return SLURM_SUCCESS;
}

int shrink_job(job_record_t& job, const std::function<int()>& resize) {
    if (!job.gres_list_alloc || !job.job_resrcs || !job.job_resrcs->node_bitmap) return resize();
    const bitmap before(bit_copy(job.job_resrcs->node_bitmap));
    const auto steps = entries<step_record_t>(job.step_list);
    const bool safe = job.job_resrcs->core_bitmap &&
                      std::all_of(steps.begin(), steps.end(),
                                  [&](const auto* step) { return rebuild_is_safe(job, *step); });
    const int rc = resize();
    if (rc != SLURM_SUCCESS || bit_equal(before.get(), job.job_resrcs->node_bitmap)) return rc;
    const auto nodes = origins(before.get(), nullptr, job.job_resrcs->node_bitmap);
    if (nodes.empty()) return rc;
    if (unclear_gres(job).empty())
        follow_allocation(job.gres_list_req, job.gres_list_alloc, static_cast<std::uint32_t>(nodes.size()));
    if (safe) {
        reorder_step_counts(job, nodes);
        rebuild_step_bitmaps(&job, before.get());
    }
    return rc;
}

}  // namespace banyan::slurm
