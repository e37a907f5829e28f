// SPDX-License-Identifier: BSD-3-Clause
#include "spank/step_plan.hpp"

#include "common/text.hpp"
#include "spank/plugin.hpp"
#include "spank/srun_args.hpp"
#include "train/launchers.hpp"

namespace banyan::spank {
namespace {

/// As the job was submitted, whatever this srun's line says.
train::options as_submitted(train::options asked) {
    if (auto shape = topo::parse_shape(submitted_text(train::parallel))) asked.parallel = std::move(*shape);
    return asked;
}

/// Which node had which slot before one left, as far as the script's environment tells: by banyan-run, which
/// follows the losses, or by the nodes at the start of the job. It is harmless: where his ranks sit is the
/// user's to say.
std::vector<std::string> order_before(const job_facts& job, const train::options& asked,
                                      std::optional<std::uint32_t> component) {
    if (auto told = expand_hostlist(variable(train::slots_variable)); told && !told->empty()) return *told;
    return train::order_at_start(asked, job.running, variable_of("SLURM_JOB_NODELIST", component));
}

}  // namespace

void add_plan_without_select(job_facts& job, const train::options& asked,
                             std::optional<std::uint32_t> component) {
    const auto submitted = as_submitted(asked);
    add_plan_without_select(job, submitted, order_before(job, submitted, component));
}

result<topo::request> request_of(const job_facts& job, const train::options& asked) {
    if (const auto* plan = job.known_plan()) {
        BANYAN_TRY(auto request, topo::make_request(*asked.parallel, plan->nodes + asked.spares,
                                                    plan->ranks_per_node, asked.spares));
        request.launchers = plan->launchers;
        return request;
    }
    const auto ranks = asked.parallel->ranks();
    auto per_node = job.running.tasks_per_node;
    const auto all = static_cast<std::uint32_t>(job.running.nodes.size());
    const auto active = all > asked.spares ? all - asked.spares : 0;
    const bool launchers = train::asks_for_launchers(*asked.parallel, active, 0, per_node);
    if (launchers) per_node = ranks / active;
    const auto nodes = per_node != 0 && ranks % per_node == 0 ? ranks / per_node + asked.spares : all;
    BANYAN_TRY(auto request, topo::make_request(*asked.parallel, nodes, per_node, asked.spares));
    request.launchers = launchers;
    return request;
}

}  // namespace banyan::spank
