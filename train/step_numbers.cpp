// SPDX-License-Identifier: BSD-3-Clause
#include "train/step_numbers.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include <fmt/format.h>

#include "train/job_size.hpp"
#include "train/min_dp.hpp"

namespace banyan::train {
namespace {

bool says_nodes(const step_words& w) { return w.min_nodes != 0 || !w.nodelist.empty(); }

/// -N, or with -w alone its nodes, as Slurm counts them.
bool nodes_fit(const step_job& job, const step_words& w) {
    const auto& r = job.request;
    if (w.nodelist.size() > r.nodes) return false;
    if (w.min_nodes == 0) return w.nodelist.empty() || w.nodelist.size() == r.nodes;
    if (w.min_nodes <= r.nodes && r.nodes <= w.max_nodes) return true;
    // As at submission -N may count the spares, where -n or the shape says that the ranks are meant.
    const bool all =
        w.min_nodes == w.max_nodes && (w.min_nodes == all_nodes(r) || w.min_nodes == job.nodes.size());
    return all && (w.tasks != 0 || w.training);
}

bool says_its_size(const step_words& w) {
    return says_nodes(w) || w.tasks != 0 || w.tasks_per_node != 0 || w.relative;
}

std::string in_words(const step_words& w) {
    std::string out;
    if (w.tasks) out += fmt::format("-n {} ", w.tasks);
    if (w.min_nodes)
        out += w.max_nodes == w.min_nodes ? fmt::format("-N {} ", w.min_nodes)
                                          : fmt::format("-N {}-{} ", w.min_nodes, w.max_nodes);
    if (w.tasks_per_node) out += fmt::format("--ntasks-per-node={} ", w.tasks_per_node);
    if (w.min_nodes == 0 && !w.nodelist.empty()) out += fmt::format("-w with {} nodes ", w.nodelist.size());
    if (w.relative) out += "-r ";
    if (!out.empty()) out.pop_back();
    return out;
}

std::string planned(const topo::request& r) {
    return fmt::format("{} ranks, {} on each of {} nodes", r.dims.ranks(), r.ranks_per_node, r.nodes);
}

/// Those that may run a task, and how the spares among them that are not needed are left out.
result<std::vector<std::string>> nodes_to_take(const step_job& job, const step_words& w) {
    const std::unordered_set<std::string> excluded(w.exclude.begin(), w.exclude.end()),
        wanted(w.nodelist.begin(), w.nodelist.end());
    std::vector<std::string> left;
    std::copy_if(job.nodes.begin(), job.nodes.end(), std::back_inserter(left),
                 [&](const auto& name) { return !excluded.contains(name); });
    if (left.size() < job.request.nodes)
        return fail(errc::invalid_input,
                    fmt::format("the training needs {} nodes ({}), and {} of the job's are left",
                                job.request.nodes, job.request.dims.text(), left.size()),
                    "add --overlap to a step that is not the training");
    for (auto spare = job.spares.rbegin(); spare != job.spares.rend(); ++spare)
        if (left.size() > job.request.nodes && !wanted.contains(*spare)) std::erase(left, *spare);
    return left;
}

}  // namespace

error other_tasks(const topo::shape& dims, std::uint32_t tasks) {
    return {errc::invalid_input,
            fmt::format("--train-parallel={} is {} ranks, but this step has {} tasks", dims.text(),
                        dims.ranks(), tasks),
            fmt::format("ask for -n {} or change a dimension", dims.ranks())};
}

std::vector<std::vector<std::uint32_t>> tasks_of_slots(const topo::request& request, bool launchers) {
    if (!launchers) return topo::ranks_of_slots(request);
    std::vector<std::vector<std::uint32_t>> out;
    for (std::uint32_t slot = 0; slot < request.nodes; ++slot) out.push_back({slot});
    return out;
}

std::vector<std::string> node_of_each_task(const topo::request& request,
                                           const std::vector<std::string>& order) {
    std::vector<std::string> out(request.tasks());
    const auto tasks = tasks_of_slots(request, request.launchers);
    for (std::size_t slot = 0; slot < tasks.size(); ++slot)
        for (const auto task : tasks[slot]) out[task] = order[slot];
    return out;
}

job_size size_of_training(std::uint32_t all_nodes, std::uint32_t all_tasks, const options& asked) {
    const auto ranks = asked.parallel->ranks();
    const auto nodes = all_nodes > asked.spares ? all_nodes - asked.spares : all_nodes;
    if (all_tasks == 0) return {nodes, ranks};
    const bool even = all_nodes != 0 && all_tasks % all_nodes == 0;
    return {nodes, std::min(even ? all_tasks / all_nodes * nodes : all_tasks, ranks)};
}

std::optional<helper_step> helper_by_size(const step_words& w, const job_size& job) {
    if (w.training || !says_its_size(w)) return std::nullopt;
    const auto nodes = std::max<std::size_t>(w.min_nodes, w.nodelist.size());
    const bool all_tasks = w.tasks != 0 ? w.tasks >= job.tasks : w.tasks_per_node != 0 && nodes == 0;
    return helper_step{fmt::format("it says {}; for the training omit that, or add --train", in_words(w)),
                       all_tasks || (w.tasks == 0 && job.nodes != 0 && nodes >= job.nodes)};
}

result<step_numbers> numbers_of_training(const step_job& job, const step_words& w) {
    const auto& r = job.request;
    const auto tasks = r.tasks();
    if (w.tasks != 0 && w.tasks != tasks && !r.launchers)
        return std::unexpected(other_tasks(r.dims, w.tasks));
    if ((w.tasks != 0 && w.tasks != tasks) || !nodes_fit(job, w) ||
        (w.tasks_per_node != 0 && w.tasks_per_node != r.tasks_per_node()))
        return fail(errc::invalid_input,
                    fmt::format("this step says {}, and its training is {}", in_words(w), planned(r)),
                    fmt::format("write srun --train -n {}, and the nodes follow", tasks));
    BANYAN_TRY(auto left, nodes_to_take(job, w));
    step_numbers out{r.nodes, tasks, {}, {}};
    const auto& taken = w.nodelist.size() == r.nodes ? w.nodelist : left;
    if (!w.relative && taken.size() == r.nodes && !job.order.empty())
        out.order = keep_nodes(job.order, taken);
    if (!w.relative && w.nodelist.empty() && left.size() == r.nodes && left.size() < job.nodes.size())
        out.nodelist = std::move(left);
    return out;
}

}  // namespace banyan::train
