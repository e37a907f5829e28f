// SPDX-License-Identifier: BSD-3-Clause
//
// One placement: the seats that keep units whole, on one island where one holds the job, or those that cost
// less; and then hosts, spares and buddies.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/placement/buddies.hpp"
#include "topo/placement/layout.hpp"
#include "topo/placement/layouts.hpp"
#include "topo/placement/seating.hpp"
#include "topo/placement/whole_units.hpp"

namespace banyan::topo {
namespace {

/// Without a model the search finds little for a job of more nodes, and takes long.
constexpr std::uint32_t large_job = 512;
/// Of the two searches for a lower cost, which slurmctld waits for: 2 ns an edge.
constexpr std::int64_t edges_for_orders = 50'000, edges_for_moves = 15'000;

/// Leaf groups and spine groups that the slots are in, as share_out weighs them.
std::size_t crossings(const seats& s) {
    std::size_t groups = 0;
    std::vector<std::uint32_t> spines;
    for (const auto& p : s.free.pools)
        if (p.taken > 0) {
            ++groups;
            spines.push_back(p.at.spine_group);
        }
    std::sort(spines.begin(), spines.end());
    const auto spine_groups =
        static_cast<std::size_t>(std::unique(spines.begin(), spines.end()) - spines.begin());
    return (groups > 1 ? groups : 0) + (spine_groups > 1 ? spine_groups : 0);
}

/// Between islands there is a line of a small share of a fabric's bandwidth, or none. So a job stays on one
/// that holds all of it, even where a unit straddles leaf groups by that: the one with the fewest broken
/// units, then crossings, then free hosts.
seats on_one_island(const fabric& f, const candidates& from, const request& r, const job_layout& layout,
                    work& limit) {
    const auto& groups = f.leaf_groups;
    if (std::all_of(groups.begin(), groups.end(),
                    [&](const leaf_group& g) { return g.island == groups.front().island; }))
        return keep_units_whole(f, from, r, layout, limit);
    std::map<std::uint32_t, std::vector<std::uint32_t>> islands;
    for (const auto h : from.free) {
        const auto group = f.hosts[h].leaf_group;
        if (group != none) islands[groups[group].island].push_back(h);
    }
    std::optional<seats> best;
    std::tuple<std::uint32_t, std::size_t, std::size_t> best_key;
    for (const auto& [island, hosts] : islands) {
        if (hosts.size() < std::size_t{r.nodes} + r.spares) continue;
        if (best && !limit.any()) break;
        auto found = keep_units_whole(f, {hosts, from.prefer, from.risk}, r, layout, limit);
        const std::tuple key(found.broken, crossings(found), hosts.size());
        if (best && key >= best_key) continue;
        best_key = key;
        best = std::move(found);
    }
    return best ? std::move(*best) : keep_units_whole(f, from, r, layout, limit);
}

/// The seats that cost least by weights_of, and the moves that make them cost less; `start`, which keeps
/// units whole, where nothing does.
seats cheapest(const fabric& f, const request& r, const job_layout& layout, seats start, work& limit) {
    const auto& pools = start.free.pools;
    const slot_graph graph(r, layout);
    limit.spend(graph.edges());
    const distances far(f, pools);
    seating best(far, graph, pools, start.pool_of_slot);
    const auto cost_of_start = best.cost();
    if (cost_of_start <= 0) return start;
    std::map<std::uint32_t, std::size_t> hosts_of_island;
    for (const auto& p : pools) hosts_of_island[p.at.island] += p.size;
    std::vector<std::uint32_t> islands{none};
    if (hosts_of_island.size() > 1)
        for (const auto& [island, hosts] : hosts_of_island)
            if (hosts >= r.nodes) islands.push_back(island);
    auto least = cost_of_start;
    for (const auto island : islands) {
        if (island != islands.front() && !limit.any()) break;
        auto found = cheapest_layout(far, graph, pools, r, layout, island,
                                     edges_for_orders / static_cast<std::int64_t>(islands.size()), limit);
        const auto cost = found ? found->cost() : least;
        if (cost >= least) continue;
        least = cost;
        best = std::move(*found);
    }
    const auto rings = layout.rings();
    const partition* const lines[] = {&layout.units(), &rings};
    best.improve(lines, edges_for_moves, limit);
    if (best.cost() >= cost_of_start) return start;
    start.pool_of_slot = best.pool_of_slot();
    return start;
}

/// Spares: where the job is and a host is free, most of the job first; else the nearest pool, the fullest one
/// first.
std::vector<std::uint32_t> take_spares(std::vector<pool>& pools, std::uint32_t count) {
    const auto home = std::max_element(pools.begin(), pools.end(),
                                       [](const pool& a, const pool& b) { return a.taken < b.taken; });
    const auto home_spine = home->at.spine_group;
    std::vector<pool*> order;
    for (auto& p : pools) order.push_back(&p);
    std::stable_sort(order.begin(), order.end(), [&](const pool* a, const pool* b) {
        const auto key = [&](const pool* p) {
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

/// Hosts of a pool go to a unit side by side, since those of an NVLink domain are.
placement take_hosts(const fabric& f, const request& r, const job_layout& layout, seats from, work& limit) {
    auto& pools = from.free.pools;
    for (auto& p : pools) p.taken = 0;
    placement out;
    out.nodes.resize(r.nodes);
    for (const auto slot : layout.units().slots()) out.nodes[slot] = pools[from.pool_of_slot[slot]].take();
    out.spares = take_spares(pools, r.spares);
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
    const job_layout layout(r);
    limit.spend(f.hosts.size() + r.nodes);
    std::vector<float> risk(f.hosts.size());
    std::vector<std::uint32_t> sound;
    for (const auto h : from.free) {
        risk[h] = risk_of(f, from.risk, h);
        if (risk[h] == 0) sound.push_back(h);
    }
    const auto on = [&](std::span<const std::uint32_t> hosts) {
        return on_one_island(f, {hosts, from.prefer, risk}, r, layout, limit);
    };
    auto chosen = sound.size() < needed ? on(from.free) : on(sound);
    // Risky hosts only where no unit breaks without them, or by a model's bytes not at all.
    if (chosen.broken > 0 && !r.model && sound.size() >= needed && sound.size() < from.free.size())
        if (auto any = on(from.free); any.broken < chosen.broken) chosen = std::move(any);
    // Whole units weigh most where no model says otherwise, and hosts to prefer have shards, which count for
    // more than bytes in a step.
    const bool good = !r.model && (chosen.broken == 0 || r.nodes > large_job);
    if (!good && from.prefer.empty()) chosen = cheapest(f, r, layout, std::move(chosen), limit);
    return take_hosts(f, r, layout, std::move(chosen), limit);
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

spread spread_of(const fabric& f, const request& r, const placement& p) {
    spread out;
    std::vector<std::uint32_t> count(f.leaf_groups.size() + 1);
    const auto group_of = [&](std::uint32_t slot) {
        const auto host = p.nodes[slot];
        const auto group = host < f.hosts.size() ? f.hosts[host].leaf_group : none;
        return group == none ? f.leaf_groups.size() : std::size_t{group};
    };
    const auto units = units_of_slots(r);
    std::vector<std::size_t> first(r.nodes, SIZE_MAX);
    std::vector<bool> straddles(r.nodes);
    for (std::uint32_t slot = 0; slot < p.nodes.size(); ++slot) {
        const auto group = group_of(slot);
        ++count[group];
        auto& known = first[units[slot]];
        if (known == SIZE_MAX) known = group;
        if (known != group) straddles[units[slot]] = true;
        out.units = std::max(out.units, units[slot] + 1);
    }
    out.straddling_units = static_cast<std::uint32_t>(std::count(straddles.begin(), straddles.end(), true));
    for (std::size_t g = 0; g < count.size(); ++g)
        if (count[g]) out.groups.emplace_back(g < f.leaf_groups.size() ? f.leaf_groups[g].id : "?", count[g]);
    std::stable_sort(out.groups.begin(), out.groups.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
}

}  // namespace banyan::topo
