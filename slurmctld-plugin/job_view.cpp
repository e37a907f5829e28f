// SPDX-License-Identifier: GPL-2.0-or-later
#include "job_view.hpp"

#include <fmt/format.h>

#include "spank/train_options.hpp"

namespace banyan::slurm {
namespace {

struct counts {
    std::uint32_t tasks;           // NO_VAL or 0: not given
    std::uint32_t tasks_per_node;  // the same
    std::uint32_t nodes;
};

bool given(std::uint32_t number) { return number != 0 && number < NO_VAL; }
bool given16(std::uint16_t number) { return number != 0 && number < NO_VAL16; }

result<std::optional<topo::request>> request_from(char** env, std::uint32_t env_size, const counts& asked) {
    train::env_reader reader;
    for (std::uint32_t i = 0; i < env_size; ++i)
        if (env[i]) reader.take(env[i]);
    BANYAN_TRY(const auto options, reader.finish());
    if (!options.parallel) {
        if (options.spares > 0)
            return fail(errc::invalid_input, "--train-spares needs --train-parallel",
                        "add for example --train-parallel=tp=8,dp=4");
        return std::nullopt;
    }
    if (!given(asked.nodes))
        return fail(errc::invalid_input, "a train job needs a number of nodes", "add -N NODES");
    std::uint32_t per_node = given(asked.tasks_per_node) ? asked.tasks_per_node : 0;
    const std::uint32_t ranks = options.parallel->ranks();
    // sbatch -N 9 --ntasks-per-node=2 states 18 tasks; with a spare 16 of them are ranks. -n alone states the
    // ranks.
    if (per_node == 0 && given(asked.tasks) && asked.tasks != ranks)
        return fail(errc::invalid_input,
                    fmt::format("--train-parallel={} is {} ranks, but the job has {} tasks",
                                options.parallel->text(), ranks, asked.tasks),
                    fmt::format("ask for -n {} or change a dimension", ranks));
    BANYAN_TRY(auto request, topo::make_request(*options.parallel, asked.nodes, per_node, options.spares));
    request.model = options.model;
    return request;
}

}  // namespace

result<std::optional<topo::request>> request_of(const job_record_t& job) {
    const auto* details = job.details;
    if (!details) return std::nullopt;
    if (details->max_nodes != 0 && details->max_nodes != details->min_nodes)
        return fail(errc::invalid_input, "a train job needs a fixed number of nodes, not a range");
    return request_from(
        job.spank_job_env, job.spank_job_env_size,
        {details->num_tasks, given16(details->ntasks_per_node) ? details->ntasks_per_node : 0u,
         details->min_nodes});
}

result<std::optional<topo::request>> request_of(const job_desc_msg_t& job) {
    if (given(job.max_nodes) && given(job.min_nodes) && job.max_nodes != job.min_nodes) {
        train::env_reader reader;
        for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i)
            if (job.spank_job_env[i]) reader.take(job.spank_job_env[i]);  // a client may send nulls
        BANYAN_TRY(const auto options, reader.finish());
        if (options.parallel)
            return fail(errc::invalid_input, "a train job needs a fixed number of nodes, not a range",
                        "write -N NODES");
        return std::nullopt;
    }
    return request_from(
        job.spank_job_env, job.spank_job_env_size,
        {job.num_tasks, given16(job.ntasks_per_node) ? job.ntasks_per_node : 0u, job.min_nodes});
}

std::uint32_t wait_minutes_of(const job_record_t& job) {
    train::env_reader reader;
    for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i)
        if (job.spank_job_env[i]) reader.take(job.spank_job_env[i]);
    const auto options = reader.finish();
    return options ? options->wait_minutes : 0;
}

}  // namespace banyan::slurm
