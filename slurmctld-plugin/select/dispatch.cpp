// SPDX-License-Identifier: GPL-2.0-or-later
//
// select/cons_tres_banyan: the C edge. A few entry points of select/cons_tres are overridden, the rest is
// left to it (forwards.cpp). Each override first is, and on any doubt falls back to, the inherited function.
#include "slurmctld-plugin/release/release.hpp"
//
#include <optional>

#include "common/guard.hpp"
#include "slurmctld-plugin/bell/ctld_bell.hpp"
#include "slurmctld-plugin/cons_tres/host_program.hpp"
#include "slurmctld-plugin/cons_tres/inherited.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/placement/job_placement.hpp"
#include "slurmctld-plugin/placement/kept_nodes.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "slurmctld-plugin/select/batch_host.hpp"
#include "slurmctld-plugin/select/het_options.hpp"
#include "slurmctld-plugin/shrink/exclusive_nodes.hpp"
#include "slurmctld-plugin/shrink/job_shrink.hpp"
#include "slurmctld-plugin/step/slots.hpp"
#include "train/environment.hpp"

using banyan::slurm::inherited_plugin;
using banyan::slurm::layout_fits;

namespace {

/// What job_submit/banyan does at submission, where a site does without it: no plan but our own, and no
/// environment that the nodes' prolog cannot be started with. False: the job cannot run.
bool clean_environment(job_record_t& job) {
    return banyan::guarded(
        "clean_environment", [] { return true; },
        [&] {
            banyan::slurm::forget_foreign_plan(job);
            const auto fits = banyan::slurm::check_environment(job);
            if (!fits) banyan::slurm::log_job_once(job.job_id, fits.error().text());
            return fits.has_value();
        });
}

/// False: it cannot start now.
bool stays_off_kept_nodes(const job_record_t& job, bitstr_t* candidates) {
    return banyan::guarded(
        "leave_kept_nodes", [] { return true; },
        [&] { return banyan::slurm::leave_kept_nodes(job, candidates); });
}

}  // namespace

extern "C" {

#define BANYAN_EXPORT __attribute__((visibility("default")))

extern BANYAN_EXPORT const char plugin_name[];
const char plugin_name[] = "Consumable trackable resources, placed on the fabric by banyan";
extern BANYAN_EXPORT const char plugin_type[];
const char plugin_type[] = BANYAN_SELECT_TYPE;
BANYAN_EXPORT uint32_t plugin_id = banyan::slurm::our_id;
extern BANYAN_EXPORT const uint32_t plugin_version;
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

BANYAN_EXPORT int init() {
    banyan::slurm::install_guard_sink();
    return banyan::guarded(
        "init", [] { return SLURM_ERROR; },
        [] {
            banyan::slurm::begin_numbering();
            return banyan::slurm::start_inherited_plugin();
        });
}

BANYAN_EXPORT int fini() {
    return banyan::guarded(
        "fini", [] { return SLURM_SUCCESS; },
        [] {
            banyan::slurm::still_bell();
            banyan::slurm::end_inherited_plugin();
            return SLURM_SUCCESS;
        });
}

BANYAN_EXPORT int select_p_job_test(job_record_t* job, bitstr_t* node_bitmap, uint32_t min_nodes,
                                    uint32_t max_nodes, uint32_t req_nodes, uint16_t mode,
                                    banyan::slurm::list_ptr preemptee_candidates,
                                    banyan::slurm::list_ptr* preemptee_jobs,
                                    banyan::slurm::excluded_ptr excluded BANYAN_WILL_RUN_PARAMETER) {
    const auto* theirs = inherited_plugin();
    if (!theirs) return SLURM_ERROR;
    const auto ask_in = [&](std::uint16_t its_mode, bitstr_t* nodes) {
        return theirs->job_test(job, nodes, min_nodes, max_nodes, req_nodes, its_mode, preemptee_candidates,
                                preemptee_jobs, excluded BANYAN_WILL_RUN_ARGUMENT);
    };
    const auto ask = [&](bitstr_t* nodes) { return ask_in(mode, nodes); };
    const auto ask_if_idle = [&](bitstr_t* nodes) { return ask_in(SELECT_MODE_TEST_ONLY, nodes); };
    if (!layout_fits(job)) return ask(node_bitmap);
    const auto start = banyan::slurm::mode_of(mode);
    if (start == banyan::slurm::test_mode::run_now && !stays_off_kept_nodes(*job, node_bitmap))
        return ESLURM_NODES_BUSY;
    if (!job->spank_job_env_size) return ask(node_bitmap);
    if (!clean_environment(*job)) return ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE;
    // The bitmap may be narrowed already when our code throws: the fallback starts again from what slurmctld
    // gave.
    bitstr_t* const given = bit_copy(node_bitmap);
    const int rc = banyan::guarded(
        "select_p_job_test",
        [&] {
            bit_copybits(node_bitmap, given);
            return ask(node_bitmap);
        },
        [&] {
            return banyan::slurm::place_job(*job, node_bitmap, start,
                                            {ask, ask_if_idle, min_nodes, preemptee_candidates != nullptr});
        });
    bit_free(given);
    return rc;
}

BANYAN_EXPORT int select_p_job_begin(job_record_t* job) {
    const auto* theirs = inherited_plugin();
    if (job && layout_fits(job) && (job->spank_job_env_size || job->het_job_list))
        banyan::guarded(
            "select_p_job_begin", [] { return 0; },
            [&] {
                banyan::slurm::forget_preemption(*job);
                banyan::slurm::settle_plan(*job);
                banyan::slurm::forget_kept_nodes(*job);
                banyan::slurm::order_own_step(*job);
                banyan::slurm::publish_options(*job);
                return 0;
            });
    return theirs ? theirs->job_begin(job) : SLURM_SUCCESS;
}

BANYAN_EXPORT int select_p_job_fini(job_record_t* job) {
    const auto* theirs = inherited_plugin();
    if (job && layout_fits(job))
        banyan::guarded(
            "select_p_job_fini", [] { return 0; },
            [&] {
                banyan::slurm::begin_again(*job);
                return 0;
            });
    return theirs ? theirs->job_fini(job) : SLURM_SUCCESS;
}

BANYAN_EXPORT int select_p_job_resized(job_record_t* job, node_record_t* node) {
    const auto* theirs = inherited_plugin();
    if (!theirs) return SLURM_ERROR;
    // Called once at most: it is not repeatable, and what follows it cannot fail but for lack of memory.
    std::optional<int> done;
    const auto resize = [&] { return done ? *done : *(done = theirs->job_resized(job, node)); };
    if (!job || !node || !layout_fits(job)) return resize();
    return banyan::guarded("select_p_job_resized", resize, [&] {
        banyan::slurm::node_leaves(*job, *node);
        const int rc = banyan::slurm::shrink_job(*job, resize);
        if (const auto* ctld = banyan::slurm::ctld_tables::get())
            banyan::slurm::count_exclusive_job_down(*job, *node, *ctld);
        if (rc == SLURM_SUCCESS && job->spank_job_env_size) {
            banyan::slurm::forget_spare(*job, *node);
            banyan::slurm::follow_nodes(*job);
            banyan::slurm::note_broken_steps(*job, *node);
            banyan::slurm::end_finished_steps(*job);
        }
        return rc;
    });
}

BANYAN_EXPORT int select_p_reconfigure() {
    const auto* theirs = inherited_plugin();
    const int rc = theirs ? theirs->reconfigure() : SLURM_ERROR;
    banyan::guarded(
        "select_p_reconfigure", [] { return 0; },
        [] {
            banyan::slurm::look_for_lost_jobs();
            return 0;
        });
    return rc;
}

}  // extern "C"
