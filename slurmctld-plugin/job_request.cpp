// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/job_request.hpp"

#include "train/job_size.hpp"
#include "train/min_dp.hpp"

namespace banyan::slurm {
namespace {

std::uint32_t given(std::uint32_t number) { return number < NO_VAL ? number : 0; }
std::uint32_t given(std::uint16_t number) { return number < NO_VAL16 ? number : 0; }

result<std::optional<job_request>> read(char** env, std::uint32_t env_size,
                                        const train::stated_numbers& stated) {
    train::env_reader reader;
    for (std::uint32_t i = 0; i < env_size; ++i)
        if (env[i]) reader.take(env[i]);  // a client may send nulls
    BANYAN_TRY(auto options, reader.finish());
    BANYAN_TRY(auto placement, train::request_from(options, stated));
    if (!placement) return std::nullopt;
    std::uint32_t min_nodes = 0;
    if (options.min_dp) {
        BANYAN_TRY(min_nodes, train::nodes_of_groups(*placement, *options.min_dp));
    }
    return job_request{std::move(options), std::move(*placement), min_nodes};
}

/// Whether it was Slurm's programs that counted the tasks, and nobody gave a number: one a node for
/// --gpus-per-task, one a socket, core and thread of each node for -B and --hint=nomultithread.
bool counts_itself(const job_desc_msg_t& job) {
    const auto times = [](std::uint16_t given_number) { return given(given_number) ? given_number : 1u; };
    const bool by_socket =
        given(job.sockets_per_node) || given(job.cores_per_socket) || given(job.threads_per_core);
    return (by_socket || !(job.bitflags & JOB_NTASKS_SET)) &&
           job.num_tasks == std::uint64_t{job.min_nodes} * times(job.sockets_per_node) *
                                times(job.cores_per_socket) * times(job.threads_per_core);
}

/// Of each node.
std::uint32_t gpus_of(const char* tres_per_node) {
    return train::gpus_in(tres_per_node ? tres_per_node : "");
}

}  // namespace

result<std::optional<job_request>> request_of(const job_record_t& job) {
    const auto* details = job.details;
    if (!details) return std::nullopt;
    // min_nodes is lower where the job goes on with fewer (kept_nodes.cpp), and slurmctld counts the tasks by
    // those of a node anew for the nodes of each run.
    const auto nodes = details->max_nodes ? details->max_nodes : details->min_nodes;
    const auto per_node = given(details->ntasks_per_node);
    return read(
        job.spank_job_env, job.spank_job_env_size,
        {nodes, nodes, per_node ? 0 : given(details->num_tasks), per_node, gpus_of(job.tres_per_node)});
}

result<std::optional<job_request>> request_of(const job_desc_msg_t& job) {
    return read(job.spank_job_env, job.spank_job_env_size,
                {given(job.min_nodes), given(job.max_nodes), counts_itself(job) ? 0 : given(job.num_tasks),
                 given(job.ntasks_per_node), gpus_of(job.tres_per_node)});
}

bool is_for_one_step(const job_record_t& job) {
    if (job.batch_flag) return false;
    const auto mark = std::string(train::step_mark) + "=" + train::step_mark_value;
    for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i)
        if (job.spank_job_env[i] && mark == job.spank_job_env[i]) return true;
    return false;
}

}  // namespace banyan::slurm
