// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/later_start.hpp"

#include <cmath>

#include <banyan/topo/traffic.hpp>

#include "slurmctld-plugin/placement/node_choice.hpp"
#include "slurmctld-plugin/placement/since.hpp"

namespace banyan::slurm {
namespace {

/// Of the weighted bytes. Less is not worth a wait: the first start is certain, and what comes free later may
/// not be.
constexpr double least_gain = 0.1;

struct gain {
    topo::placement placement;
    double share;  ///< of the weighted bytes that go away, least_gain to 1
};

double weigh(const train_job& job, const topo::placement& p) {
    const auto& asked = job.request;
    const bool exchanged = asked.model && asked.model->cp == topo::cp_scheme::all_to_all;
    const bool to_all =
        asked.dims.size(topo::dimension::ep) > 1 || (exchanged && asked.dims.size(topo::dimension::cp) > 1);
    job.limit.spend(std::int64_t{to_all ? asked.dims.ranks() : asked.nodes});
    return topo::weighted_cost(job.fabric.fabric, job.request, p);
}

/// Of a start at `time` over the first one, whose placement weighs `weight`.
std::optional<gain> gain_at(const train_job& job, const bitstr_t* candidates, std::time_t time,
                            const first_start& first, double weight) {
    if (!job.limit.any()) return std::nullopt;  // the first start is an answer, too
    const auto free = job.free_at(candidates, time);
    if (weight <= 0 || free == first.free) return std::nullopt;
    auto placed = choose_nodes(job, free);
    if (!placed) return std::nullopt;
    const auto share = 1 - weigh(job, *placed) / weight;
    if (share < least_gain) return std::nullopt;
    return gain{std::move(*placed), share};
}

}  // namespace

std::optional<later_start> worth_waiting(const train_job& job, const bitstr_t* candidates,
                                         const first_start& first, std::time_t longest) {
    static since_when could_start;
    const auto waited = first.time <= std::time(nullptr) ? could_start.seconds(job.record) : 0;
    if (waited >= longest) return std::nullopt;
    const auto time = first.time + longest - waited;
    auto found = gain_at(job, candidates, time, first, weigh(job, first.placement));
    if (!found) return std::nullopt;
    return later_start{time, std::move(found->placement)};
}

std::optional<train::better_later> gain_of_waiting(const train_job& job, const bitstr_t* candidates,
                                                   const first_start& first) {
    const auto weight = weigh(job, first.placement);
    for (const std::uint32_t minutes : {10u, 60u, 360u})
        if (const auto found =
                gain_at(job, candidates, first.time + std::time_t{minutes} * 60, first, weight))
            return train::better_later{minutes, static_cast<std::uint32_t>(std::lround(100 * found->share))};
    return std::nullopt;
}

}  // namespace banyan::slurm
