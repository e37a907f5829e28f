// SPDX-License-Identifier: GPL-2.0-or-later
//
// select/cons_tres_banyan: the entry points for steps, which slurmctld has up to 24.11.
#include "slurmctld-plugin/release/release.hpp"
//
#include "common/guard.hpp"
#include "slurmctld-plugin/cons_tres/host_program.hpp"
#include "slurmctld-plugin/cons_tres/inherited.hpp"
#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "slurmctld-plugin/step/broken_steps.hpp"
#include "slurmctld-plugin/step/step_nodes.hpp"
#include "slurmctld-plugin/step/step_order.hpp"

using banyan::slurm::inherited_plugin;
using banyan::slurm::layout_fits;

#define BANYAN_EXPORT __attribute__((visibility("default")))

extern "C" {

BANYAN_EXPORT int select_p_job_init(banyan::slurm::list_ptr jobs) {
    banyan::guarded(
        "select_p_job_init", [] { return 0; },
        [&] {
            banyan::slurm::jobs_are_restored();
            for (const auto* job : banyan::slurm::entries<job_record_t>(jobs)) (void)layout_fits(job);
            return 0;
        });
    const auto* theirs = inherited_plugin();
    return theirs ? theirs->job_init(jobs) : SLURM_ERROR;
}

BANYAN_EXPORT bitstr_t* select_p_step_pick_nodes(job_record_t* job, select_jobinfo_t* info,
                                                 uint32_t node_count, bitstr_t** avail_nodes) {
    const auto* theirs = inherited_plugin();
    const auto pick = [&] {
        return theirs ? theirs->step_pick_nodes(job, info, node_count, avail_nodes) : nullptr;
    };
    if (!job || !layout_fits(job) || !job->spank_job_env_size) return pick();
    bitstr_t* const ours = banyan::guarded(
        "select_p_step_pick_nodes", []() -> bitstr_t* { return nullptr; },
        [&] {
            banyan::slurm::end_broken_steps(*job);
            return banyan::slurm::nodes_of_step(*job);
        });
    return ours ? ours : pick();
}

BANYAN_EXPORT int select_p_step_start(step_record_t* step) {
    const auto* theirs = inherited_plugin();
    const int rc = theirs ? theirs->step_start(step) : SLURM_SUCCESS;
    if (step && layout_fits(step) && layout_fits(step->job_ptr) && step->job_ptr->spank_job_env_size)
        banyan::guarded(
            "select_p_step_start", [] { return 0; },
            [&] {
                banyan::slurm::order_step(*step);
                return 0;
            });
    return rc;
}

}  // extern "C"
