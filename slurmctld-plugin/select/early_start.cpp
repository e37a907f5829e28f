// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/select/early_start.hpp"

#include <algorithm>
#include <ctime>
#include <vector>

#include "slurmctld-plugin/bell/ctld_bell.hpp"
#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "slurmctld-plugin/step/step_complete_proxy.hpp"

namespace banyan::slurm {
namespace {

struct requeued_job {
    std::uint32_t job_id;
    std::time_t ours;         ///< the time that we gave it; another one is somebody's, who wants it so
    std::ptrdiff_t down = 0;  ///< nodes of its last run that were DOWN when it was last looked at
};

/// In memory alone: after a restart of slurmctld the job begins when it was told to.
std::vector<requeued_job>& requeued() {
    static std::vector<requeued_job> jobs;
    return jobs;
}

std::ptrdiff_t nodes_down(const job_record_t& job) {
    const auto* ctld = ctld_tables::get();
    if (!ctld || !job.node_bitmap) return 0;
    return std::ranges::count_if(set_bits(job.node_bitmap), [&](int at) {
        const auto* node = ctld->node(at);
        return node && IS_NODE_DOWN(node);
    });
}

/// A node that is lost now leaves no job, since the job is over: nobody else says its word.
void speak_of_the_down(requeued_job& entry, const job_record_t& job) {
    const auto down = nodes_down(job);
    if (down > entry.down) complete_for_lost_nodes(job);
    entry.down = down;
}

/// Whether no more has to be done about the job.
bool settle(requeued_job& entry) {
    constexpr std::time_t credential_gap_s = 2;  // between two runs: job_test holds it up for as long
    const auto now = std::time(nullptr);
    auto* job = find_job_record(entry.job_id);
    if (!job || !layout_fits(job) || !job->details) return true;
    if (IS_JOB_COMPLETING(job)) {
        speak_of_the_down(entry, *job);
        return now >= entry.ours;  // which Slurm takes for none
    }
    auto& begin = job->details->begin_time;
    if (!IS_JOB_PENDING(job) || begin != entry.ours) return true;
    begin = entry.ours = std::min(begin, std::max(now, job->time_last_active + credential_gap_s));
    if (begin > now) return false;
    queue_job_scheduler();
    return true;
}

}  // namespace

void begin_when_clean(job_record_t& job) {
    if (!job.details || starts_again_by_itself(job)) return;
    const auto now = std::time(nullptr);
    // Still to come: ours, from an earlier call for the same run, or somebody's.
    if (job.details->begin_time > now) return;
    // Processes that do not end when they are asked to are killed after KillWait.
    const auto kill_wait = static_cast<std::time_t>(slurm_conf.kill_wait);
    const auto soon = now + std::max<std::time_t>(10, kill_wait + 5) + (slurm_conf.epilog ? 20 : 0);
    job.details->begin_time = soon;
    std::erase_if(requeued(), [&](const auto& entry) { return entry.job_id == job.job_id; });
    requeued().push_back({job.job_id, soon});
    ring();
}

bool start_what_is_clean() {
    std::erase_if(requeued(), settle);
    return !requeued().empty();
}

}  // namespace banyan::slurm
