// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan_without_select.hpp"

#include <fmt/format.h>

#include "common/text.hpp"
#include "train/job_size.hpp"
#include "train/min_dp.hpp"
#include "train/plan_in_order.hpp"

namespace banyan::train {
namespace {

/// For the nodes at the start.
result<topo::request> request_of(const options& asked, const running_job& job) {
    stated_numbers stated;
    stated.min_nodes = stated.max_nodes = job.nodes_at_start;
    stated.tasks_per_node = job.tasks_per_node;
    BANYAN_TRY(auto request, request_from(asked, stated));
    if (!request)
        return fail(errc::not_found, "the job has no plan of its ranks",
                    "--train-ckpt needs --train-parallel");
    return std::move(*request);
}

}  // namespace

result<options> options_of_plan(const std::function<std::string(which)>& text_of) {
    env_reader reader;
    for (const auto option : {parallel, spares, min_dp})
        if (const auto text = text_of(option); !text.empty())
            reader.take(fmt::format("{}={}", option_names[option].env, text));
    return reader.finish();
}

result<plan> plan_without_select(const options& asked, const running_job& job) {
    BANYAN_TRY(const auto full, request_of(asked, job));
    std::uint32_t min_nodes = 0;
    if (asked.min_dp) {
        BANYAN_TRY(min_nodes, nodes_of_groups(full, *asked.min_dp));
    }
    const auto left = static_cast<std::uint32_t>(job.nodes.size());
    auto now = request_on(full, min_nodes, left);
    if (!now || left < now->nodes)
        return fail(errc::exhausted, fmt::format("job {} has {} nodes left, and its ranks need {}", job.job,
                                                 left, full.nodes));
    now->spares = left - now->nodes;
    plan before;
    before.shape = now->dims.text();
    before.nodes = job.before;
    if (before.nodes.size() > now->nodes) before.nodes.resize(now->nodes);
    BANYAN_TRY(auto out, plan_in_order(*now, job.nodes, &before));
    out.job = job.job;
    out.restart = job.restart;
    out.generation = 1;
    out.shape = full.dims.text();
    out.min_nodes = min_nodes;
    out.buddies = next_slots(full.nodes);
    return out;
}

std::vector<std::string> order_at_start(const options& asked, running_job job, std::string_view nodelist) {
    auto nodes = expand_hostlist(nodelist);
    if (!nodes || nodes->size() != job.nodes_at_start) return {};
    job.nodes = std::move(*nodes);
    auto plan = plan_without_select(asked, job);
    return plan ? std::move(plan->nodes) : std::vector<std::string>{};
}

}  // namespace banyan::train
