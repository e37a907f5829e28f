// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/absence.hpp"

#include <set>
#include <string>
#include <vector>

#include "common/timer.hpp"

namespace banyan::fault {
namespace {

constexpr std::chrono::seconds ask_again(5);

}  // namespace

task<void> look_for_absent(absence_tools with, std::chrono::milliseconds time) {
    banyan::timer timer(with.io, time);
    co_await timer.async_wait(as_result);
    const auto has_been_here = [&with](const std::string& node) {
        return with.agents.agents().contains(node);
    };
    const auto& known = with.known.agents();
    std::vector<std::string> absent(known.begin(), known.end());
    std::erase_if(absent, has_been_here);
    // All of them at once: how many there are says whether any of them can be judged.
    std::set<std::string> taken;
    while (!absent.empty()) {
        const auto jobs = co_await run_blocking(with.pool, [&with] { return with.slurm.running_jobs(); });
        if (jobs) {
            for (const auto& job : *jobs) taken.insert(job.nodes.begin(), job.nodes.end());
            break;
        }
        with.known.complain(jobs.error());
        timer.expires_after(ask_again);
        co_await timer.async_wait(as_result);
        std::erase_if(absent, has_been_here);
    }
    std::erase_if(absent, [&](const auto& node) { return has_been_here(node) || !taken.contains(node); });
    const auto agents = with.agents.agents().size() + absent.size();
    for (const auto& node : absent) with.watch.gone(node, agents);
}

}  // namespace banyan::fault
