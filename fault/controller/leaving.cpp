// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/leaving.hpp"

#include <fmt/format.h>

namespace banyan::fault {
namespace {

result<void> can_leave(cluster& slurm, const job_status& job, const std::string& node) {
    BANYAN_TRY(const auto needed, slurm.nodes_needed(job));
    // One without a plan may have no use for the part that broke, and nobody starts its step again.
    if (!needed) return fail(errc::conflict, fmt::format("job {} was placed without a plan", job.id));
    if (job.may_requeue) return {};
    if (job.batch_host == node)
        return fail(errc::conflict,
                    fmt::format("the script of job {} runs there, and it may not be requeued", job.id));
    if (job.nodes.size() <= *needed)
        return fail(errc::conflict, fmt::format("job {} has no spare, and it may not be requeued", job.id));
    return {};
}

}  // namespace

result<void> can_leave(cluster& slurm, const std::vector<job_status>& jobs, const std::string& node) {
    for (const auto& job : jobs) BANYAN_CHECK(can_leave(slurm, job, node));
    return {};
}

result<std::vector<job_status>> jobs_that_leave(cluster& slurm, const std::string& node,
                                                const std::string& reason, bool& drained) {
    if (!reason.empty()) BANYAN_CHECK(slurm.set_drain(node, reason));
    drained = drained || !reason.empty();
    BANYAN_TRY(auto jobs, slurm.jobs_on(node));
    BANYAN_CHECK(can_leave(slurm, jobs, node));
    return jobs;
}

}  // namespace banyan::fault
