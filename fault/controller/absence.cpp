// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/absence.hpp"

#include <boost/asio/steady_timer.hpp>

namespace banyan::fault {
namespace {

constexpr std::chrono::seconds ask_again(5);

}  // namespace

task<void> look_for_absent(absence_tools with, std::chrono::milliseconds time) {
    asio::steady_timer timer(with.io, time);
    co_await timer.async_wait(as_result);
    const auto has_been_here = [&with](const std::string& node) {
        return with.agents.agents().contains(node);
    };
    const auto& known = with.known.agents();
    const std::vector<std::string> all(known.begin(), known.end());
    // All of them at once: how many there are says whether any of them can be judged.
    std::vector<std::string> absent;
    for (std::size_t n = 0; n < all.size();) {
        const auto& node = all[n];
        if (has_been_here(node)) {
            ++n;
            continue;
        }
        const auto jobs =
            co_await run_blocking(with.pool, [&with, &node] { return with.slurm.jobs_on(node); });
        if (!jobs) {
            with.known.complain(jobs.error());
            timer.expires_after(ask_again);
            co_await timer.async_wait(as_result);
            continue;
        }
        if (!jobs->empty()) absent.push_back(node);
        ++n;
    }
    std::erase_if(absent, has_been_here);
    const auto agents = with.agents.agents().size() + absent.size();
    for (const auto& node : absent) with.watch.gone(node, agents);
}

}  // namespace banyan::fault
