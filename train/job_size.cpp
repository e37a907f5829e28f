// SPDX-License-Identifier: BSD-3-Clause
#include "train/job_size.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "common/text.hpp"
#include "train/launchers.hpp"
#include "train/min_dp.hpp"

namespace banyan::train {
namespace {

/// Options that mean nothing without a shape.
result<void> check_lone(const options& asked) {
    const char* lone = asked.spares > 0         ? "--train-spares"
                       : asked.checkpoint       ? "--train-ckpt"
                       : asked.wait_minutes > 0 ? "--train-wait"
                       : asked.model            ? "--train-model"
                       : asked.min_dp           ? "--train-min-dp"
                                                : nullptr;
    if (!lone) return {};
    return fail(errc::invalid_input, fmt::format("{} needs --train-parallel", lone),
                "add for example --train-parallel=tp=8,dp=4");
}

/// Both Slurm's own and ours: -N counts the spares.
std::string line_of(std::uint32_t nodes, std::uint32_t per_node) {
    return fmt::format("-N {} --ntasks-per-node={}", nodes, per_node);
}

/// The number of nodes of a job that does not say it.
result<std::uint32_t> derived_nodes(const options& asked, const stated_numbers& stated) {
    const auto ranks = asked.parallel->ranks();
    const auto per_node = stated.tasks_per_node ? stated.tasks_per_node : stated.gpus_per_node;
    if (per_node != 0 && ranks % per_node == 0) return ranks / per_node + asked.spares;
    if (per_node != 0)
        return fail(errc::invalid_input,
                    fmt::format("--train-parallel={} is {} ranks, which {} on each node do not divide",
                                asked.parallel->text(), ranks, per_node),
                    "add -N NODES, spares included, or change a dimension");
    return fail(errc::invalid_input, "a training job needs a number of nodes",
                fmt::format("add -N NODES{}, or --ntasks-per-node=RANKS, from which it follows",
                            asked.spares ? ", spares included" : ""));
}

/// Slurm's programs lower -N to -n, and nobody hears what -N was.
bool may_be_lowered(const options& asked, const stated_numbers& stated) {
    return asked.spares > 0 && stated.tasks == stated.min_nodes && stated.tasks == asked.parallel->ranks();
}

result<void> check_tasks(const options& asked, const stated_numbers& stated, const topo::request& request) {
    const auto ranks = asked.parallel->ranks();
    // sbatch -N 9 --ntasks-per-node=2 states 18 tasks; with a spare 16 of them are ranks.
    // Without -N it takes one node for granted.
    const bool all = stated.tasks_per_node != 0 &&
                     stated.tasks == std::uint64_t{all_nodes(request)} * request.ranks_per_node;
    const bool one = stated.min_nodes == 0 && stated.tasks == stated.tasks_per_node;
    if (stated.tasks == 0 || stated.tasks == ranks || all || one) return {};
    return fail(errc::invalid_input,
                fmt::format("--train-parallel={} is {} ranks, but the job has {} tasks",
                            asked.parallel->text(), ranks, stated.tasks),
                fmt::format("ask for -n {} or change a dimension", ranks));
}

/// torchrun and its like number the ranks of a node one after the other.
result<std::optional<topo::request>> launchers_from(const options& asked, std::uint32_t nodes,
                                                    std::uint32_t ranks_each) {
    BANYAN_TRY(auto request, topo::make_request(*asked.parallel, nodes, ranks_each, asked.spares));
    request.model = asked.model;
    request.launchers = true;
    if (topo::ranks_are_consecutive(request)) return std::optional(std::move(request));
    return fail(
        errc::invalid_input,
        fmt::format("one task a node is a launcher of {} consecutive ranks, but --train-parallel={} "
                    "keeps ranks together on a node that are not",
                    ranks_each, asked.parallel->text()),
        fmt::format("name the dimensions with tp first, or ask for --ntasks-per-node={} and have srun "
                    "start the ranks",
                    ranks_each));
}

/// Of a job with a shape.
result<std::optional<topo::request>> full_request(const options& asked, const stated_numbers& stated) {
    if (stated.min_nodes != 0 && stated.max_nodes != 0 && stated.min_nodes != stated.max_nodes)
        return fail(errc::invalid_input, "a training job needs a fixed number of nodes, not a range",
                    "write -N NODES");
    auto nodes = stated.min_nodes;
    if (nodes == 0) {
        BANYAN_TRY(nodes, derived_nodes(asked, stated));
    }
    const auto active = nodes > asked.spares ? nodes - asked.spares : 0;
    if (asks_for_launchers(*asked.parallel, active, stated.tasks, stated.tasks_per_node))
        return launchers_from(asked, nodes, asked.parallel->ranks() / active);
    auto request = topo::make_request(*asked.parallel, nodes, stated.tasks_per_node, asked.spares);
    if (may_be_lowered(asked, stated) && (!request || stated.tasks_per_node == 0)) {
        const auto per_node = stated.tasks_per_node ? stated.tasks_per_node : 1;
        return fail(errc::invalid_input,
                    fmt::format("-n {0} lets Slurm lower -N to {0}, so that no node is left for the spares",
                                stated.tasks),
                    fmt::format("write {}, and no -n",
                                line_of((stated.tasks + per_node - 1) / per_node + asked.spares, per_node)));
    }
    // The number of tasks is what the user counted: it is told first where that alone is wrong.
    if (!request && stated.tasks_per_node == 0 && stated.tasks != 0)
        BANYAN_CHECK(check_tasks(asked, stated, {}));
    if (!request) return std::unexpected(std::move(request).error());
    BANYAN_CHECK(check_tasks(asked, stated, *request));
    request->model = asked.model;
    return std::optional(std::move(*request));
}

}  // namespace

result<std::optional<topo::request>> request_from(const options& asked, const stated_numbers& stated) {
    if (!asked.parallel) {
        BANYAN_CHECK(check_lone(asked));
        return std::nullopt;
    }
    BANYAN_TRY(auto request, full_request(asked, stated));
    if (request && asked.min_dp) {
        BANYAN_CHECK(nodes_of_groups(*request, *asked.min_dp));
    }
    return request;
}

std::uint32_t gpus_in(std::string_view gres, bool all_are_gpus) {
    std::uint64_t sum = 0;
    while (!gres.empty()) {
        auto entry = gres.substr(0, gres.find(','));
        gres.remove_prefix(std::min(gres.size(), entry.size() + 1));
        for (const std::string_view prefix : {"gres:", "gres/"})
            if (entry.starts_with(prefix)) entry.remove_prefix(prefix.size());
        bool is_gpu = all_are_gpus;
        if (entry == "gpu" || entry.starts_with("gpu:") || entry.starts_with("gpu=")) {
            is_gpu = true;
            entry.remove_prefix(std::min<std::size_t>(entry.size(), 4));
        }
        if (!is_gpu) continue;
        const auto count = entry.substr(entry.find_last_of(":=") + 1);  // all of it when there is none
        const bool counted = !count.empty() && count[0] >= '0' && count[0] <= '9';
        const auto number =
            counted ? parse_number(count, topo::max_ranks_per_node) : result<std::uint64_t>(1);
        if (!number) return 0;
        sum += *number;
    }
    return sum <= topo::max_ranks_per_node ? static_cast<std::uint32_t>(sum) : 0;
}

result<void> check_tasks_of_gpus(const topo::request& asked, std::uint32_t gpus, std::uint32_t each) {
    const auto tasks = asked.tasks_per_node();
    if (each != 0 && std::uint64_t{gpus} * each == tasks) return {};
    const auto fitting = gpus != 0 ? gpus : each != 0 ? std::max(1u, tasks / each) : tasks;
    return fail(
        errc::invalid_input,
        fmt::format("--ntasks-per-gpu={} on {} GPUs of a node are not the {} tasks of --train-parallel={}",
                    each, gpus, tasks, asked.dims.text()),
        fmt::format("write --ntasks-per-node={} --gpus-per-node={}, and no --ntasks-per-gpu", tasks,
                    fitting));
}

result<std::optional<std::string>> gpus_of_each(std::string_view in_all, std::uint32_t nodes) {
    const auto at = in_all.find_last_of(":=") + 1;  // 0 when there is none
    const auto count = parse_number(in_all.substr(at), UINT32_MAX);
    if (in_all.contains(',') || !count || nodes == 0) return std::nullopt;
    if (*count % nodes != 0)
        return fail(errc::invalid_input, fmt::format("-G {} does not divide over {} nodes", *count, nodes),
                    "write --gpus-per-node=GPUS");
    return std::string(in_all.substr(0, at)) + std::to_string(*count / nodes);
}

}  // namespace banyan::train
