// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/rank_search.hpp"

#include <algorithm>

namespace banyan::fault {
namespace {

job_ranks written(const job_status& job, const result<node_ranks>& found) {
    job_ranks out;
    out.job = job.id;
    out.restarts = job.restarts;
    if (found) {
        out.ranks = ranges_text(found->ranks);
        out.of = found->of;
        out.step = found->step;
    } else {
        out.unknown = found.error().what;
    }
    return out;
}

bool is_known(const incident& i, const job_status& job) {
    return std::ranges::any_of(i.ranks, [&](const job_ranks& r) {
        return r.job == job.id && r.restarts == job.restarts && r.unknown.empty();
    });
}

}  // namespace

task<void> note_ranks(records& known, asio::thread_pool& pool, cluster& slurm, std::uint64_t number,
                      std::vector<job_status> jobs) {
    if (jobs.empty()) co_return;
    for (const auto& job : jobs) {
        auto* i = known.incidents().find(number);
        if (!i) co_return;
        std::erase_if(i->ranks,
                      [&](const auto& r) { return std::ranges::find(i->jobs, r.job) == i->jobs.end(); });
        if (std::ranges::find(i->jobs, job.id) == i->jobs.end() || is_known(*i, job)) continue;
        if (i->ranks.size() >= incident::max_ranked) break;
        const auto node = i->object.node;
        const auto found =
            co_await run_blocking(pool, [&slurm, &job, &node] { return slurm.ranks_on(job, node); });
        if (!(i = known.incidents().find(number))) co_return;
        std::erase_if(i->ranks, [&](const auto& r) { return r.job == job.id; });
        i->ranks.push_back(written(job, found));
    }
    known.save_soon(number);
}

}  // namespace banyan::fault
