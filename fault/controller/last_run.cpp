// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/last_run.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "common/clock.hpp"

namespace banyan::fault {
namespace {

constexpr std::chrono::minutes longest(1);

bool has(const std::vector<std::string>& nodes, const std::string& node) {
    return std::ranges::find(nodes, node) != nodes.end();
}

}  // namespace

result<std::optional<last_run>> look_at_last_run(cluster& slurm, const job_status& job,
                                                 const std::string& lost,
                                                 std::optional<std::uint32_t> ended_step) {
    const auto until = clock::now() + longest;
    BANYAN_TRY(const auto needed, slurm.nodes_needed(job));
    BANYAN_TRY(const auto steps, slurm.steps(job.id));
    // Of a node that is in several steps the worst counts: one that holds, then one that is not known.
    last_run out;
    std::map<std::string, int> worst;
    const auto is = [&](const std::string& node, int how) { worst[node] = std::max(worst[node], how); };
    for (const auto& step : steps) {
        const bool of_last_run = ended_step ? step.id == *ended_step : has(step.nodes, lost);
        if (!of_last_run || (needed && step.nodes.size() < *needed)) continue;
        for (const auto& node : step.nodes) {
            if ((node == lost && !ended_step) || !has(job.nodes, node)) continue;
            auto found =
                clock::now() < until
                    ? slurm.processes(job.id, step, node)
                    : result<left_behind>(fail(errc::unavailable, "there was no time to ask all nodes"));
            if (!found) out.why = found.error().text();
            is(node, !found ? 3 : *found == left_behind::some ? 2 : *found == left_behind::no_answer ? 1 : 0);
        }
    }
    for (const auto& [node, how] : worst) {
        if (how == 3) out.unknown.push_back(node);
        if (how == 2) out.holding.push_back(node);
        if (how == 1) out.silent.push_back(node);
    }
    out.asked = worst.size();
    BANYAN_TRY(const auto now, slurm.job(job.id));
    if (now.phase != job_phase::running || now.restarts != job.restarts) return std::optional<last_run>();
    return std::optional(std::move(out));
}

}  // namespace banyan::fault
