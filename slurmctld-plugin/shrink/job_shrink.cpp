// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/shrink/job_shrink.hpp"

#include <algorithm>

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "slurmctld-plugin/shrink/job_gres.hpp"

namespace banyan::slurm {
namespace {

/// Of each node that is left, its place among those before.
std::vector<std::size_t> kept_places(const bitstr_t* before, const bitstr_t* left) {
    std::vector<std::size_t> out;
    std::size_t place = 0;
    for (const int node : set_bits(before)) {
        if (is_set(left, node)) out.push_back(place);
        ++place;
    }
    return out;
}

}  // namespace

int shrink_job(job_record_t& job, const std::function<int()>& resize) {
    if (!job.gres_list_alloc || !job.job_resrcs || !job.job_resrcs->node_bitmap || !gres_fit(job))
        return resize();
    const bitmap before(bit_copy(job.job_resrcs->node_bitmap));
    const auto steps = entries<step_record_t>(job.step_list);
    const bool safe = job.job_resrcs->core_bitmap && std::ranges::all_of(steps, [&](const auto* step) {
                          return rebuild_is_safe(job, *step);
                      });
    const int rc = resize();
    if (rc != SLURM_SUCCESS || bit_equal(before.get(), job.job_resrcs->node_bitmap)) return rc;
    const auto kept = kept_places(before.get(), job.job_resrcs->node_bitmap);
    if (kept.empty()) return rc;
    if (is_counted_by_node(job)) follow_allocation(job.gres_list_req, job.gres_list_alloc, kept.size());
    if (safe) {
        reorder_step_counts(job, kept);
        if (!steps_follow_a_shrinking_job) rebuild_step_bitmaps(&job, before.get());
    }
    return rc;
}

}  // namespace banyan::slurm
