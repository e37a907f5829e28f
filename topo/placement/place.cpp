// SPDX-License-Identifier: BSD-3-Clause
//
// One placement: the assignment that keeps units whole, on one island where one holds the job, or one with a
// lower objective; and then hosts, spares and buddies. docs/decisions/004 has the whole.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/placement/buddies.hpp"
#include "topo/placement/communication_graph.hpp"
#include "topo/placement/construct_orders.hpp"
#include "topo/placement/construct_units.hpp"
#include "topo/placement/packing.hpp"
#include "topo/placement/search_slots.hpp"

namespace banyan::topo {
namespace {

/// Without a model the search finds little for a job of more nodes, and takes long.
constexpr std::uint32_t large_job = 512;
/// Of the two searches for a lower cost, which slurmctld waits for: 2 ns an edge.
constexpr std::int64_t edges_for_orders = 50'000, edges_for_moves = 15'000;

/// Of the bins that are used.
std::size_t crossings_of(const assignment& a) {
    std::vector<std::uint32_t> spine_groups;
    for (const auto& b : a.free.bins)
        if (b.taken > 0) spine_groups.push_back(b.at.spine_group);
    return crossings(std::move(spine_groups));
}

/// Between islands there is a line of a small share of a fabric's bandwidth, or none. So a job stays on one
/// that holds all of it, even where a unit straddles leaf groups by that: the one with the fewest broken
/// units, then crossings, then free hosts.
assignment on_one_island(const fabric& f, const candidates& from, const request& r, const job_slots& job,
                         work& limit) {
    const auto& groups = f.leaf_groups;
    if (std::all_of(groups.begin(), groups.end(),
                    [&](const leaf_group& g) { return g.island == groups.front().island; }))
        return construct_whole_units(f, from, r, job, limit);
    std::map<std::uint32_t, std::vector<std::uint32_t>> islands;
    for (const auto h : from.free) {
        const auto group = f.hosts[h].leaf_group;
        if (group != none) islands[groups[group].island].push_back(h);
    }
    std::optional<assignment> best;
    std::tuple<std::uint32_t, std::size_t, std::size_t> best_key;
    for (const auto& [island, hosts] : islands) {
        if (hosts.size() < std::size_t{r.nodes} + r.spares) continue;
        if (best && !limit.any()) break;
        auto found = construct_whole_units(f, {hosts, from.prefer, from.risk}, r, job, limit);
        const std::tuple key(found.broken, crossings_of(found), hosts.size());
        if (best && key >= best_key) continue;
        best_key = key;
        best = std::move(found);
    }
    return best ? std::move(*best) : construct_whole_units(f, from, r, job, limit);
}

/// The assignment with the least objective of those that are constructed by orders, and what a local search
/// makes of it; `start`, which keeps units whole, where that is no better.
assignment lower_objective(const fabric& f, const request& r, const job_slots& job, assignment start,
                           work& limit) {
    const auto& bins = start.free.bins;
    const communication_graph graph(r, job);
    limit.spend(graph.edges());
    const bin_distances distance(f, bins);
    const auto at_start = graph.objective(distance, start.bin_of_slot);
    if (at_start <= 0) return start;
    std::map<std::uint32_t, std::size_t> hosts_of_island;
    for (const auto& b : bins) hosts_of_island[b.at.island] += b.size;
    std::vector<std::uint32_t> islands{none};
    if (hosts_of_island.size() > 1)
        for (const auto& [island, hosts] : hosts_of_island)
            if (hosts >= r.nodes) islands.push_back(island);
    auto best = start.bin_of_slot;
    auto least = at_start;
    for (const auto island : islands) {
        if (island != islands.front() && !limit.any()) break;
        auto found = construct_by_orders(distance, graph, bins, r, job, island,
                                         edges_for_orders / static_cast<std::int64_t>(islands.size()), limit);
        const auto objective = found ? graph.objective(distance, *found) : least;
        if (objective >= least) continue;
        least = objective;
        best = std::move(*found);
    }
    slot_search search(distance, graph, bins, std::move(best));
    const auto rings = job.rings();
    const partition* const lines[] = {&job.units(), &rings};
    search.run(lines, edges_for_moves, limit);
    if (search.objective() >= at_start) return start;
    start.bin_of_slot = search.bin_of_slot();
    return start;
}

/// Spares: where the job is and a host is free, most of the job first; else the nearest bin, the fullest one
/// first.
std::vector<std::uint32_t> take_spares(std::vector<bin>& bins, std::uint32_t count) {
    const auto home = std::max_element(bins.begin(), bins.end(),
                                       [](const bin& a, const bin& b) { return a.taken < b.taken; });
    const auto home_spine = home->at.spine_group;
    std::vector<bin*> order;
    for (auto& p : bins) order.push_back(&p);
    std::stable_sort(order.begin(), order.end(), [&](const bin* a, const bin* b) {
        const auto key = [&](const bin* p) {
            return std::tuple(
                p->taken == 0, p->at.spine_group != home_spine,
                p->taken ? -static_cast<std::int64_t>(p->taken) : static_cast<std::int64_t>(p->left()));
        };
        return key(a) < key(b);
    });
    std::vector<std::uint32_t> spares;
    for (auto* p : order)
        while (spares.size() < count && p->left() > 0) spares.push_back(p->take());
    return spares;
}

/// Hosts of a bin go to a unit side by side, since those of an NVLink domain are.
placement take_hosts(const fabric& f, const request& r, const job_slots& job, assignment from, work& limit) {
    auto& bins = from.free.bins;
    for (auto& p : bins) p.taken = 0;
    placement out;
    out.nodes.resize(r.nodes);
    for (const auto slot : job.units().slots()) out.nodes[slot] = bins[from.bin_of_slot[slot]].take();
    out.spares = take_spares(bins, r.spares);
    out.buddies = choose_buddies(f, out.nodes, limit);
    return out;
}

result<placement> place_within(const fabric& f, const candidates& from, const request& r, work& limit) {
    const std::size_t needed = std::size_t{r.nodes} + r.spares;
    if (from.free.size() < needed)
        return fail(errc::exhausted,
                    fmt::format("{} nodes are needed ({} and {} spares), {} are free on the fabric", needed,
                                r.nodes, r.spares, from.free.size()));
    for (const auto host : from.free)
        if (host >= f.hosts.size())
            return fail(errc::internal, fmt::format("host {} is not on the fabric", host));
    const job_slots job(r);
    limit.spend(f.hosts.size() + r.nodes);
    std::vector<float> risk(f.hosts.size());
    std::vector<std::uint32_t> sound;
    for (const auto h : from.free) {
        risk[h] = risk_of(f, from.risk, h);
        if (risk[h] == 0) sound.push_back(h);
    }
    const auto on = [&](std::span<const std::uint32_t> hosts) {
        return on_one_island(f, {hosts, from.prefer, risk}, r, job, limit);
    };
    auto chosen = sound.size() < needed ? on(from.free) : on(sound);
    // Risky hosts only where no unit breaks without them, or by a model's bytes not at all.
    if (chosen.broken > 0 && !r.model && sound.size() >= needed && sound.size() < from.free.size())
        if (auto any = on(from.free); any.broken < chosen.broken) chosen = std::move(any);
    // Whole units weigh most where no model says otherwise, and hosts to prefer have shards, which count for
    // more than bytes in a step.
    const bool good = !r.model && (chosen.broken == 0 || r.nodes > large_job);
    if (!good && from.prefer.empty()) chosen = lower_objective(f, r, job, std::move(chosen), limit);
    return take_hosts(f, r, job, std::move(chosen), limit);
}

}  // namespace

result<placement> place(const fabric& f, const candidates& from, const request& r, work& all) {
    work limit(std::min(all.left(), steps_of_placement));
    auto out = place_within(f, from, r, limit);
    all.spend(limit.spent());
    return out;
}

result<placement> arrange(const fabric& f, std::span<const std::uint32_t> hosts, const request& r) {
    if (hosts.size() != r.nodes)
        return fail(errc::invalid_input,
                    fmt::format("{} nodes are given for {} slots", hosts.size(), r.nodes));
    std::vector<std::uint32_t> sorted(hosts.begin(), hosts.end());
    std::sort(sorted.begin(), sorted.end());
    auto alone = r;
    alone.spares = 0;
    return place(f, sorted, alone);
}

}  // namespace banyan::topo
