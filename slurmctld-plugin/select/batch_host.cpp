// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/select/batch_host.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/guard.hpp"
#include "slurmctld-plugin/bell/ctld_bell.hpp"
#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/placement/kept_nodes.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "slurmctld-plugin/select/early_start.hpp"
#include "slurmctld-plugin/step/step_complete_proxy.hpp"
#include "train/supervised.hpp"

namespace banyan::slurm {
namespace {

struct lost_job {
    std::uint32_t job_id;
    std::uint32_t restart;  ///< one that was requeued meanwhile has lost nothing
};

std::vector<lost_job>& lost_jobs() {
    static std::vector<lost_job> jobs;
    return jobs;
}

/// Of --requeue=expedite, in a run that lost a node: that may be back before the job is requeued.
std::vector<lost_job>& short_jobs() {
    static std::vector<lost_job> jobs;
    return jobs;
}

/// slurmctld has read its state, and nobody has looked at its jobs since.
std::atomic<bool> state_is_new{false};

bool is_training(const job_record_t& job) {
    if (!job.spank_job_env_size) return false;
    const auto request = request_of(job);
    return request && *request;
}

bool is_under_way(const job_record_t& job) {
    const auto* its = &job;
    return (IS_JOB_RUNNING(its) || IS_JOB_SUSPENDED(its)) && !IS_JOB_COMPLETING(its);
}

bool may_lose_nodes(const job_record_t& job) {
    return !job.kill_on_node_fail && job.batch_flag && !job.het_job_id && is_under_way(job) &&
           is_training(job);
}

/// As its step says: slurmctld gives a job whose state it reads the first of its nodes for a batch host.
std::string host_of_script(const job_record_t& job) {
    for (const auto* step : entries<step_record_t>(job.step_list))
        if (step->step_id.step_id == SLURM_BATCH_SCRIPT && step->step_layout && step->step_layout->node_list)
            return step->step_layout->node_list;
    return job.batch_host ? job.batch_host : "";
}

/// The node has ranks of a training that nobody starts again, whatever spares there are. Slurm would let the
/// script see its step fail, and the job fail with it. A training that has not begun, or is over, ends by
/// nothing: before the first step who starts it is not known, and takes a spare if there is one.
bool ends_the_training(const job_record_t& job, const std::string& node) {
    if (!job.details || !job.details->requeue) return false;
    const auto plan = stored_plan(job);
    if (!plan || plan->restart != job.restart_cnt || plan->supervised ||
        std::ranges::find(plan->nodes, node) == plan->nodes.end())
        return false;
    if (job.next_step_id == 0) return job.node_cnt < (plan->min_nodes ? plan->min_nodes : plan->nodes.size());
    return std::ranges::any_of(training_steps(job), [&](const auto* step) { return was_on(*step, node); });
}

/// Who started the step that loses a node starts the next one, too. Noted for the time when none runs.
void note_who_starts_again(job_record_t& job) {
    const auto steps = training_steps(job);
    if (steps.empty()) return;
    note_supervised(job, std::ranges::any_of(steps, [](const auto* step) {
                        return train::starts_again(step->submit_line ? step->submit_line : "");
                    }));
}

void note_the_loss(const job_record_t& job, const std::string& node) {
    if (node == host_of_script(job))
        log_job_once(job.job_id, "its script ran on node " + node +
                                     ", which is lost: the job is requeued where it may be, and else ends");
    else if (ends_the_training(job, node))
        log_job_once(job.job_id, "node " + node +
                                     " is lost, and no banyan-run is there to start its step again: the job "
                                     "is requeued");
    else
        return;
    lost_jobs().push_back({job.job_id, job.restart_cnt});
}

bool has(const job_record_t& job, int node) { return node >= 0 && is_set(job.node_bitmap, node); }

/// Nodes of its ranks that are the job's no more.
std::vector<std::string> lacking(const job_record_t& job, const ctld_tables& ctld) {
    auto plan = stored_plan(job);
    if (!plan || !job.node_bitmap) return {};
    std::erase_if(plan->nodes, [&](const auto& name) { return has(job, ctld.find_node(name)); });
    return std::move(plan->nodes);
}

/// Of a job as it was read from the saved state: nodes that it has no more, and had.
void note_former_losses(const job_record_t& job, const ctld_tables& ctld) {
    const auto host = host_of_script(job);
    if (!host.empty() && !has(job, ctld.find_node(host))) note_the_loss(job, host);
    for (const auto& name : lacking(job, ctld)) {
        const int at = ctld.find_node(name);
        const auto* node = at >= 0 ? ctld.node(at) : nullptr;
        if (node && IS_NODE_DOWN(node)) note_the_loss(job, name);
    }
}

void note_former_losses() {
    const auto* ctld = ctld_tables::get();
    if (!ctld) return;
    for (auto* job : entries<job_record_t>(ctld->jobs())) {
        if (!layout_fits(job)) continue;
        if (job->node_bitmap && may_lose_nodes(*job)) note_former_losses(*job, *ctld);
        if (IS_JOB_PENDING(job) && job->spank_job_env_size) ask_for_all_nodes(*job);
    }
}

void end(job_record_t& job) {
    const auto* its = &job;
    const bool again = job.details && job.details->requeue;
    if (is_under_way(job)) {
        if (again) begin_when_clean(job);  // before it ends: from then on it has a time of Slurm's
        job.batch_flag = 1;  // Slurm counts up, and holds a job whose launch failed five times: this one ran
        complete_lost(job, again);
        if (again) expedite(job);
    } else if (again && IS_JOB_FAILED(its)) {
        // The end of its script, which went with the node or with its step, came to slurmctld first.
        begin_when_clean(job);
        requeue_ended(job);
    }
}

}  // namespace

void node_leaves(job_record_t& job, const node_record_t& node) noexcept {
    guarded(
        "node_leaves", [] { return 0; },
        [&] {
            const auto* its = &node;
            if (!layout_fits(its) || !IS_NODE_DOWN(its) || !is_training(job)) return 0;
            complete_for_lost_nodes(job);
            if (starts_again_by_itself(job)) short_jobs().push_back({job.job_id, job.restart_cnt});
            if (may_lose_nodes(job)) {
                note_who_starts_again(job);
                note_the_loss(job, node.name);
            }
            if (!lost_jobs().empty()) ring();
            return 0;
        });
}

void look_for_lost_jobs() {
    const auto* ctld = ctld_tables::get();
    if (!ctld) return;
    const auto jobs = entries<job_record_t>(ctld->jobs());
    // Where no training runs, or waits, there is nothing to look for, and no thread.
    if (std::ranges::none_of(jobs, [](const auto* job) {
            return layout_fits(job) && job->spank_job_env_size && (is_under_way(*job) || IS_JOB_PENDING(job));
        }))
        return;
    state_is_new = true;
    ring();
}

void end_lost_jobs() {
    if (state_is_new.exchange(false)) note_former_losses();
    for (const auto& lost : std::exchange(lost_jobs(), {}))
        if (auto* job = find_job_record(lost.job_id); job && job->restart_cnt == lost.restart) end(*job);
}

void begin_again(job_record_t& job) {
    if (!is_training(job)) return;
    const auto* ctld = ctld_tables::get();
    const bool goes_back = (job.job_state & JOB_REQUEUE) && job.batch_flag;
    const bool lost_one =
        std::erase_if(short_jobs(), [&](const auto& lost) { return lost.job_id == job.job_id; }) != 0;
    if (goes_back && lost_one && ctld && !lacking(job, *ctld).empty()) expedite(job);
    const auto* its = &job;
    if ((its->job_state & JOB_STATE_BASE) == JOB_NODE_FAIL) complete_for_lost_nodes(job);
    if (!goes_back) return;
    // One that ended a step itself, since it could not train with fewer, has to wait for all.
    if (!training_steps(job).empty()) keep_nodes(job);
    begin_when_clean(job);
}

}  // namespace banyan::slurm
