// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/select/batch_host.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "common/guard.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/select/early_start.hpp"
#include "slurmctld-plugin/step/lost_word.hpp"

namespace banyan::slurm {
namespace {

/// Jobs that lack their --no-kill from the loss of their script to their job_fini, both in one piece of work
/// of slurmctld under its locks.
std::vector<std::uint32_t>& without_script() {
    static std::vector<std::uint32_t> jobs;
    return jobs;
}

bool is_training(const job_record_t& job) {
    const auto request = request_of(job);
    return request && *request;
}

void node_is_lost(job_record_t& job, const node_record_t& node) {
    const job_record_t* running = &job;
    if (job.kill_on_node_fail || !job.batch_flag || !job.batch_host || job.het_job_id ||
        !(IS_JOB_RUNNING(running) || IS_JOB_SUSPENDED(running)) || IS_JOB_COMPLETING(running) ||
        node.name != std::string(job.batch_host) || !job.spank_job_env_size || !is_training(job))
        return;
    log_job_once(job.job_id, std::string("its script ran on node ") + node.name +
                                 ", which is lost: the job is requeued where it may be, and else ends");
    without_script().push_back(job.job_id);
    job.kill_on_node_fail = 1;
}

extern "C" void banyan_node_fail(job_record_t* job, node_record_t* node) {
    if (job && node)  // without a job: the node is about to fail
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
    if (std::erase(without_script(), job.job_id) != 0)
        job.kill_on_node_fail = 0;
    else if (!(job.job_state & JOB_REQUEUE) || !job.batch_flag || !job.spank_job_env_size ||
             !is_training(job))
        return;
    begin_when_clean(job);
}

}  // namespace banyan::slurm
