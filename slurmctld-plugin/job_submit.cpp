// SPDX-License-Identifier: GPL-2.0-or-later
//
// job_submit/banyan: refuses a train job whose numbers do not fit, at submission, with the reason and a
// suggestion. The select plugin cannot: what it answers reaches the user as "requested node configuration is
// not available".
#include "slurm_compat.hpp"
//
#include <fmt/format.h>

#include "common/guard.hpp"
#include "growth_rules.hpp"
#include "job_view.hpp"
#include "notice.hpp"

extern "C" {

#define BANYAN_EXPORT __attribute__((visibility("default")))

extern BANYAN_EXPORT const char plugin_name[];
const char plugin_name[] = "Checks banyan's --train options";
extern BANYAN_EXPORT const char plugin_type[];
const char plugin_type[] = "job_submit/banyan";
extern BANYAN_EXPORT const uint32_t plugin_version;
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

BANYAN_EXPORT int init() {
    banyan::slurm::install_guard_sink();
    return SLURM_SUCCESS;
}

BANYAN_EXPORT int fini() { return SLURM_SUCCESS; }

BANYAN_EXPORT int job_submit(job_desc_msg_t* job, uint32_t, char** err_msg) {
    return banyan::guarded(
        "job_submit", [] { return SLURM_SUCCESS; },
        [&]() -> int {
            banyan::slurm::forget_plan(*job);
            const auto request = banyan::slurm::request_of(*job);
            if (request) return SLURM_SUCCESS;
            if (err_msg) *err_msg = xstrdup(("banyan: " + request.error().text()).c_str());
            return ESLURM_BAD_TASK_COUNT;
        });
}

// A job that is to give its nodes to another is killed before the select plugin is asked: what that would
// refuse has to be refused here, while the job is unharmed.
BANYAN_EXPORT int job_modify(job_desc_msg_t* change, job_record_t* job, uint32_t) {
    return banyan::guarded(
        "job_modify", [] { return SLURM_SUCCESS; },
        [&]() -> int {
            if (!job || change->min_nodes != 0 || !job->details || job->details->expanding_jobid == 0)
                return SLURM_SUCCESS;
            const job_record_t* into = find_job_record(job->details->expanding_jobid);
            if (!into || (!banyan::slurm::has_gres(*job) && !banyan::slurm::has_gres(*into)))
                return SLURM_SUCCESS;
            const auto obstacle = banyan::slurm::growth_obstacle(*job, *into);
            if (obstacle.empty()) return SLURM_SUCCESS;
            banyan::slurm::log_info(fmt::format("JobId={} does not give its nodes to JobId={}: {}",
                                                job->job_id, into->job_id, obstacle));
            return ESLURM_NOT_SUPPORTED;
        });
}

}  // extern "C"
