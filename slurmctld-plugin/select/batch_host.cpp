// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/select/batch_host.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "common/guard.hpp"
#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "slurmctld-plugin/select/early_start.hpp"
#include "slurmctld-plugin/step/lost_word.hpp"

namespace banyan::slurm {
namespace {

/// Jobs that lack their --no-kill from the loss of a node to their job_fini, both in one piece of work
/// of slurmctld under its locks.
std::vector<std::uint32_t>& to_be_requeued() {
    static std::vector<std::uint32_t> jobs;
    return jobs;
}

bool is_training(const job_record_t& job) {
    const auto request = request_of(job);
    return request && *request;
}

bool ran_the_script(const job_record_t& job, const node_record_t& node) {
    return job.batch_host && node.name == std::string(job.batch_host);
}

bool has_a_step_on(const job_record_t& job, const node_record_t& node) {
    for (const auto* step : entries<step_record_t>(job.step_list))
        if (step->state == JOB_RUNNING && step->step_id.step_id < SLURM_MAX_NORMAL_STEP_ID &&
            step->step_node_bitmap && is_set(step->step_node_bitmap, node.index))
            return true;
    return false;
}

/// The node has ranks of a training that nobody starts again, whatever spares there are. Slurm would let the
/// script see its step fail, and the job fail with it. A training that has not begun, or is over, ends by
/// nothing: before the first step who starts it is not known, and takes a spare if there is one.
bool ends_the_training(const job_record_t& job, const node_record_t& node) {
    if (!job.details || !job.details->requeue) return false;
    const auto plan = stored_plan(job);
    if (!plan || plan->restart != job.restart_cnt || plan->supervised ||
        std::ranges::find(plan->nodes, node.name) == plan->nodes.end())
        return false;
    if (job.next_step_id == 0)
        return job.node_cnt <= (plan->min_nodes ? plan->min_nodes : plan->nodes.size());
    return has_a_step_on(job, node);
}

void node_is_lost(job_record_t& job, const node_record_t& node) {
    const job_record_t* running = &job;
    if (job.kill_on_node_fail || !job.batch_flag || job.het_job_id ||
        !(IS_JOB_RUNNING(running) || IS_JOB_SUSPENDED(running)) || IS_JOB_COMPLETING(running) ||
        !job.spank_job_env_size || !is_training(job))
        return;
    if (ran_the_script(job, node))
        log_job_once(job.job_id, std::string("its script ran on node ") + node.name +
                                     ", which is lost: the job is requeued where it may be, and else ends");
    else if (ends_the_training(job, node))
        log_job_once(job.job_id, std::string("node ") + node.name +
                                     " is lost, and no banyan-run is there to start its step again: the job "
                                     "is requeued");
    else
        return;
    to_be_requeued().push_back(job.job_id);
    job.kill_on_node_fail = 1;
}

extern "C" void banyan_node_fail(job_record_t* job, node_record_t* node) {
    if (job && node && layout_fits(job))  // without a job: the node is about to fail
        guarded(
            "node_fail", [] { return 0; },
            [&] {
                node_is_lost(*job, *node);
                if (is_training(*job)) speak_for_lost(*job, *node);
                return 0;
            });
}

slurm_nonstop_ops_t* asked() {
    return static_cast<slurm_nonstop_ops_t*>(::dlsym(RTLD_DEFAULT, "nonstop_ops"));
}

}  // namespace

void watch_batch_hosts() {
    auto* ops = asked();
    if (ops && (!ops->node_fail || ops->node_fail == banyan_node_fail))
        ops->node_fail = banyan_node_fail;
    else
        log_state("batch hosts",
                  "a training job that loses the node of its script keeps its other nodes until its time is "
                  "over: this slurmctld does not ask the plugin");
}

void forget_batch_hosts() {
    if (auto* ops = asked(); ops && ops->node_fail == banyan_node_fail) ops->node_fail = nullptr;
}

void begin_again(job_record_t& job) {
    if (std::erase(to_be_requeued(), job.job_id) != 0)
        job.kill_on_node_fail = 0;
    else if (!(job.job_state & JOB_REQUEUE) || !job.batch_flag || !job.spank_job_env_size ||
             !is_training(job))
        return;
    begin_when_clean(job);
}

}  // namespace banyan::slurm
