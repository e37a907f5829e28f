// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/submit/job_change.hpp"

#include <fmt/format.h>

#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/submit/expansion.hpp"
#include "train/job_size.hpp"

namespace banyan::slurm {
namespace {

result<void> keeps_its_numbers(const job_desc_msg_t& change, const job_record_t& job,
                               const job_request& request) {
    const job_record_t* waiting = &job;
    if (!IS_JOB_PENDING(waiting)) return {};
    const auto& details = *job.details;
    const auto nodes = train::all_nodes(request.placement);
    const auto refused = [&](const char* what, std::uint32_t typed, std::uint32_t now) {
        return fail(errc::invalid_input,
                    fmt::format("JobId={} keeps its {}: {} follows from --train-parallel={}, not {}",
                                job.job_id, what, now, request.placement.dims.text(), typed),
                    "cancel the job, and submit it with other numbers");
    };
    for (const auto typed : {change.min_nodes, change.max_nodes})
        if (typed < NO_VAL && typed != nodes) return refused("number of nodes", typed, nodes);
    if (change.num_tasks < NO_VAL && change.num_tasks != details.num_tasks)
        return refused("number of tasks", change.num_tasks, details.num_tasks);
    if (change.ntasks_per_node < NO_VAL16 && change.ntasks_per_node != details.ntasks_per_node)
        return refused("tasks per node", change.ntasks_per_node, details.ntasks_per_node);
    return {};
}

}  // namespace

result<void> check_change(const job_desc_msg_t& change, const job_record_t& job) {
    if (!job.details) return {};
    const auto request = request_of(job);
    const bool trains = request && *request;
    if (trains) BANYAN_CHECK(keeps_its_numbers(change, job, **request));
    return check_expansion(change.dependency, trains);
}

}  // namespace banyan::slurm
