// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/job_request.hpp"

#include "train/numbers.hpp"

namespace banyan::slurm {
namespace {

std::uint32_t given(std::uint32_t number) { return number < NO_VAL ? number : 0; }
std::uint32_t given(std::uint16_t number) { return number < NO_VAL16 ? number : 0; }

result<train::options> options_in(char** env, std::uint32_t env_size) {
    train::env_reader reader;
    for (std::uint32_t i = 0; i < env_size; ++i)
        if (env[i]) reader.take(env[i]);  // a client may send nulls
    return reader.finish();
}

}  // namespace

result<train::options> options_of(const job_desc_msg_t& job) {
    return options_in(job.spank_job_env, job.spank_job_env_size);
}

result<std::optional<topo::request>> request_of(const job_record_t& job) {
    const auto* details = job.details;
    if (!details) return std::nullopt;
    BANYAN_TRY(const auto asked, options_in(job.spank_job_env, job.spank_job_env_size));
    return train::request_from(
        asked, {details->min_nodes, details->max_nodes, given(details->num_tasks),
                given(details->ntasks_per_node), train::gpus_in(job.tres_per_node ? job.tres_per_node : "")});
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

result<std::optional<topo::request>> request_of(const job_desc_msg_t& job) {
    BANYAN_TRY(const auto asked, options_of(job));
    const bool counted = counts_itself(job);
    return train::request_from(
        asked, {given(job.min_nodes), given(job.max_nodes), counted ? 0 : given(job.num_tasks),
                given(job.ntasks_per_node), train::gpus_in(job.tres_per_node ? job.tres_per_node : "")});
}

std::uint32_t wait_minutes_of(const job_record_t& job) {
    const auto options = options_in(job.spank_job_env, job.spank_job_env_size);
    return options ? options->wait_minutes : 0;
}

}  // namespace banyan::slurm
