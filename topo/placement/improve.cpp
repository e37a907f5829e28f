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
struct budgets {
    std::int64_t orders = 50'000, moves = 15'000;
};
constexpr budgets for_slots{}, for_units{8'000, 2'500};  // of which there are fewer

using bins_of_slots = std::vector<std::uint32_t>;

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

/// Replaces `best` by an assignment with a lower objective, if one is found.
void lower(const bin_distances& distance, const communication_graph& graph, const std::vector<bin>& bins,
           const order_problem& asked, std::span<const partition* const> lines, const budgets& budget,
           bins_of_slots& best, work& limit) {
    const auto at_start = graph.objective(distance, best);
    limit.spend(graph.edges());
    if (at_start <= 0) return;
    auto least = at_start;
    auto from = best;
    const auto islands = islands_for(bins, asked.slots);
    for (const auto island : islands) {
        if (island != islands.front() && !limit.any()) break;
        auto found = construct_by_orders(distance, graph, bins, asked, island,
                                         budget.orders / static_cast<std::int64_t>(islands.size()), limit);
        const auto objective = found ? graph.objective(distance, *found) : least;
        if (objective >= least) continue;
        least = objective;
        from = std::move(*found);
    }
    slot_search search(distance, graph, bins, std::move(from));
    search.run(lines, budget.moves, limit);
    if (search.objective() < at_start) best = search.bin_of_slot();
}

/// The same with units for slots, and in each bin as much room as it has for whole ones.
void lower_by_units(const bin_distances& distance, const communication_graph& graph,
                    const std::vector<bin>& bins, const job_slots& job, bins_of_slots& best, work& limit) {
    const auto& units = job.units();
    auto room = bins;
    for (auto& b : room) b.size /= units.largest();
    bins_of_slots bin_of_unit;
    std::vector<std::uint32_t> ring_of_unit, bundle_of_unit;
    const auto rings = job.rings();
    for (std::uint32_t u = 0; u < units.size(); ++u) {
        const auto slot = units[u].front();
        bin_of_unit.push_back(best[slot]);
        ring_of_unit.push_back(rings.set_of_slot()[slot]);
        bundle_of_unit.push_back(job.bundles().set_of_slot()[slot]);
    }
    const auto asked = units_in_order(job);
    const partition same_ring(ring_of_unit, rings.size(), asked.sequences.front()),
        same_bundle(bundle_of_unit, job.bundles().size(), asked.sequences.front());
    const partition* const lines[] = {&same_bundle, &same_ring};
    const auto between = graph.between(units);
    limit.spend(graph.edges());
    lower(distance, between, room, asked, lines, for_units, bin_of_unit, limit);
    for (std::uint32_t u = 0; u < units.size(); ++u)
        for (const auto slot : units[u]) best[slot] = bin_of_unit[u];
}

}  // namespace

assignment lower_objective(const fabric& f, const request& r, const job_slots& job, assignment start,
                           bool whole_units, work& limit) {
    const auto& bins = start.free.bins;
    const communication_graph graph(r, job, weights_of(r));
    limit.spend(graph.edges());
    const bin_distances distance(f, bins);
    const auto& units = job.units();
    const bool alike = units.size() * units.largest() == r.nodes;
    if (whole_units && units.largest() > 1) {
        if (alike) lower_by_units(distance, graph, bins, job, start.bin_of_slot, limit);
    } else {
        const auto rings = job.rings();
        const partition* const lines[] = {&units, &rings};
        lower(distance, graph, bins, slots_in_order(r, job), lines, for_slots, start.bin_of_slot, limit);
    }
    start.objective = graph.objective(distance, start.bin_of_slot);
    limit.spend(graph.edges());
    return start;
}

}  // namespace banyan::topo
