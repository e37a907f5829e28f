// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/select/early_start.hpp"

#include <algorithm>
#include <ctime>
#include <vector>

namespace banyan::slurm {
namespace {

struct requeued_job {
    std::uint32_t job_id;
    std::time_t ours;  // the time that we gave it; another one is somebody's, who wants it so
};

/// In memory alone: after a restart of slurmctld the job begins when it was told to.
std::vector<requeued_job>& requeued() {
    static std::vector<requeued_job> jobs;
    return jobs;
}

/// Whether no more has to be done about the job.
bool settle(const requeued_job& entry) {
    constexpr std::time_t credential_gap_s = 2;  // between two runs: job_test holds it up for as long
    auto* job = find_job_record(entry.job_id);
    if (!job || !job->details) return true;
    if (IS_JOB_COMPLETING(job)) return false;
    if (!IS_JOB_PENDING(job)) return true;
    auto& begin = job->details->begin_time;
    if (begin == entry.ours)
        begin = std::min(begin, std::max(std::time(nullptr), job->time_last_active + credential_gap_s));
    return true;
}

}  // namespace

void begin_when_clean(job_record_t& job) {
    if (!job.details) return;
    const auto now = std::time(nullptr);
    // Still to come: ours, from an earlier call for the same run, or somebody's.
    if (job.details->begin_time > now) return;
    // Processes that do not end when they are asked to are killed after KillWait.
    const auto kill_wait = static_cast<std::time_t>(slurm_conf.kill_wait);
    const auto soon = now + std::max<std::time_t>(10, kill_wait + 5) + (slurm_conf.epilog ? 20 : 0);
    job.details->begin_time = soon;
    std::erase_if(requeued(), [&](const auto& entry) { return entry.job_id == job.job_id; });
    requeued().push_back({job.job_id, soon});
}

void start_what_is_clean() { std::erase_if(requeued(), settle); }

}  // namespace banyan::slurm
