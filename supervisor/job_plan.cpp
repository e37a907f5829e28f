// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/job_plan.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "common/text.hpp"
#include "train/min_dp.hpp"
#include "train/supervised.hpp"

namespace banyan::supervisor {
namespace {

// srun by itself waits for SlurmctldTimeout, a minute or more, for a word that may never come: a slurmctld
// that was started again, or that still waits for a dead node, sends none.
constexpr const char* patience = "--immediate=2";

}  // namespace

job_plan plan_of(const train::plan_summary& told) {
    job_plan out{told.nodes, told.ranks(), told.tasks(), told.spares, {}, {}, told.min_nodes};
    const auto dims = topo::parse_shape(told.shape);
    if (told.min_nodes != 0 && dims)
        out.elastic = topo::request{*dims, told.nodes, told.ranks_per_node, 0, std::nullopt, told.launchers};
    return out;
}

result<job_plan> plan_of(const train::options& asked, train::running_job told) {
    BANYAN_TRY(const auto plan, train::plan_without_select(asked, told));
    auto out = plan_of(train::summary_of(plan));
    told.before = plan.nodes;
    out.asked = asked;
    out.told = std::move(told);
    return out;
}

void follow_losses(job_plan& plan, const std::vector<std::string>& nodes) {
    if (!plan.asked) return;
    plan.told.nodes = nodes;
    // With too few nodes for a plan there is no step either.
    if (const auto now = train::plan_without_select(*plan.asked, plan.told)) {
        plan.told.before = now->nodes;
        plan.spares = now->spares;
    }
    ::setenv(train::slots_variable, compress_hostlist(plan.told.before).c_str(), 1);
}

job_plan plan_on(const job_plan& plan, std::size_t nodes) {
    if (!plan.elastic || nodes >= plan.nodes) return plan;
    const auto fewer = train::request_on(*plan.elastic, plan.min_nodes, static_cast<std::uint32_t>(nodes));
    if (!fewer) return plan;
    auto out = plan;
    out.nodes = fewer->nodes;
    out.ranks = fewer->dims.ranks();
    out.tasks = fewer->tasks();
    return out;
}

std::vector<std::string> spares_to_leave_out(const job_plan& plan, const std::vector<std::string>& nodes) {
    std::vector<std::string> out;
    auto surplus = nodes.size() > plan.nodes ? nodes.size() - plan.nodes : 0;
    for (auto spare = plan.spares.rbegin(); spare != plan.spares.rend() && surplus > 0; ++spare) {
        if (std::find(nodes.begin(), nodes.end(), *spare) == nodes.end()) continue;
        out.push_back(*spare);
        --surplus;
    }
    return out;
}

std::vector<std::string> srun_words(const job_plan& plan, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& given, bool recovering) {
    std::vector<std::string> out{"srun"};
    if (recovering) out.push_back(patience);
    if (plan.component) out.push_back(fmt::format("--het-group={}", *plan.component));
    if (plan.nodes) {
        out.insert(out.end(), train::words_of_banyan_run.begin(), train::words_of_banyan_run.end());
        out.insert(out.end(), {"-N", std::to_string(plan.nodes), "-n", std::to_string(plan.tasks)});
        if (plan.tasks != plan.ranks) out.push_back("--ntasks-per-node=1");
        // Left to itself srun takes the first nodes of the allocation, spare or not.
        if (const auto unused = spares_to_leave_out(plan, nodes); !unused.empty())
            out.push_back("--exclude=" + compress_hostlist(unused));
    }
    out.insert(out.end(), given.begin(), given.end());
    return out;
}

void correct_environment(const std::vector<std::string>& nodes, std::optional<std::uint32_t> component) {
    const auto own = [&](const char* name) {
        return component ? fmt::format("{}_HET_GROUP_{}", name, *component) : std::string(name);
    };
    const char* told = std::getenv(own("SLURM_JOB_NODELIST").c_str());
    if (const auto names = expand_hostlist(told ? told : ""); names && *names == nodes) return;
    const auto count = std::to_string(nodes.size()), list = compress_hostlist(nodes);
    for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
        ::setenv(own(name).c_str(), count.c_str(), 1);
    for (const char* name : {"SLURM_NODELIST", "SLURM_JOB_NODELIST"})
        ::setenv(own(name).c_str(), list.c_str(), 1);
    for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"})
        ::unsetenv(own(name).c_str());
}

}  // namespace banyan::supervisor
