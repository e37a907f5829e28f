// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/improve.hpp"

#include <map>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/communication_graph.hpp"
#include "topo/placement/construct_orders.hpp"
#include "topo/placement/search_slots.hpp"

namespace banyan::topo {
namespace {

/// Edges that the two searches for a lower cost may look at, which slurmctld waits for: 2 ns an edge.
constexpr std::int64_t most_for_orders = 50'000, most_for_moves = 15'000;

/// None, for all bins, and those that hold all that is asked for alone.
std::vector<std::uint32_t> islands_for(const std::vector<bin>& bins, std::uint32_t slots) {
    std::map<std::uint32_t, std::size_t> reach;
    for (const auto& b : bins) reach[b.at.island] += b.size;
    std::vector<std::uint32_t> out{none};
    if (reach.size() > 1)
        for (const auto& [island, size] : reach)
            if (size >= slots) out.push_back(island);
    return out;
}

}  // namespace

assignment lower_objective(const fabric& f, const request& r, const job_slots& job, assignment start,
                           work& limit) {
    const auto& bins = start.free.bins;
    const communication_graph graph(r, job, weights_of(r));
    const bin_distances distance(f, bins);
    start.objective = graph.objective(distance, start.bin_of_slot);
    limit.spend(2 * graph.edges());
    if (start.objective <= 0) return start;
    auto least = start.objective;
    auto from = start.bin_of_slot;
    const auto asked = slots_in_order(r, job, bins);
    const auto islands = islands_for(bins, asked.slots);
    for (const auto island : islands) {
        if (island != islands.front() && !limit.any()) break;
        auto found = construct_by_orders(distance, graph, bins, asked, island,
                                         most_for_orders / static_cast<std::int64_t>(islands.size()), limit);
        const auto objective = found ? graph.objective(distance, *found) : least;
        if (objective >= least) continue;
        least = objective;
        from = std::move(*found);
    }
    const auto rings = job.rings();
    const partition* const lines[] = {&job.units(), &rings};
    slot_search search(distance, graph, bins, std::move(from));
    search.run(lines, most_for_moves, limit);
    if (search.objective() < start.objective) {
        start.objective = search.objective();
        start.bin_of_slot = search.bin_of_slot();
    }
    return start;
}

}  // namespace banyan::topo
