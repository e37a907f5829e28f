// SPDX-License-Identifier: BSD-3-Clause
//
// Choosing nodes: bundles whole where they fit, else units whole, into the pools that share_out chose; what
// fits nowhere whole straddles as few groups as possible. Cost: O(hosts log hosts + pools x spine groups).
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/placement/buddies.hpp"
#include "topo/placement/layout.hpp"
#include "topo/placement/layouts.hpp"
#include "topo/placement/pools.hpp"
#include "topo/placement/seating.hpp"
#include "topo/placement/sends.hpp"

namespace banyan::topo {
namespace {

/// Without a model the search finds little for a job of more nodes, and takes long.
constexpr std::uint32_t large_job = 512;
/// Of the two searches for a lower cost, which slurmctld waits for: 2 ns an edge.
constexpr std::int64_t edges_for_orders = 120'000, edges_for_moves = 30'000;

using slots_of_piece = std::vector<std::vector<std::uint32_t>>;

slots_of_piece by_number(const std::vector<std::uint32_t>& number) {
    slots_of_piece out;
    for (std::uint32_t slot = 0; slot < number.size(); ++slot) {
        out.resize(std::max<std::size_t>(out.size(), number[slot] + 1));
        out[number[slot]].push_back(slot);
    }
    return out;
}

std::uint32_t largest(const slots_of_piece& pieces) {
    std::size_t out = 0;
    for (const auto& slots : pieces) out = std::max(out, slots.size());
    return static_cast<std::uint32_t>(out);
}

/// Fills the slots of one piece from `source`.
void fill(std::vector<std::uint32_t>& nodes, const std::vector<std::uint32_t>& slots, pool& source) {
    for (const auto slot : slots) nodes[slot] = source.take();
}

/// A piece that no pool holds whole: in the spine group, or else the island, that can hold it and has the
/// least left, the smallest pool that ends it, else the largest part, and so on.
void fill_straddling(std::vector<std::uint32_t>& nodes, const std::vector<std::uint32_t>& slots,
                     std::vector<pool>& pools) {
    std::map<std::uint32_t, std::size_t> left_of_spine, left_of_island;
    for (const auto& p : pools) {
        left_of_spine[p.spine_group] += p.left();
        left_of_island[p.island] += p.left();
    }
    const auto too_small = [&](const pool& p, std::size_t wanted) {
        return std::pair(left_of_island[p.island] < wanted, left_of_spine[p.spine_group] < wanted);
    };
    const pool* home = nullptr;
    for (std::size_t at = 0; at < slots.size();) {
        const auto wanted = slots.size() - at;
        pool* best = nullptr;
        const auto key = [&](const pool& p) {
            const bool ends = p.left() >= wanted;
            const auto left = static_cast<std::int64_t>(p.left());
            const auto near = home ? std::pair(p.island != home->island, p.spine_group != home->spine_group)
                                   : too_small(p, wanted);
            const auto around = home ? 0 : left_of_spine[p.spine_group];
            return std::tuple(near, around, !ends, ends ? left : -left, p.taken == 0);
        };
        for (auto& p : pools)
            if (p.left() > 0 && (!best || key(p) < key(*best))) best = &p;
        home = best;
        for (auto n = std::min(wanted, best->left()); n > 0; --n) nodes[slots[at++]] = best->take();
    }
}

/// Spares: where the job is and a host is free, most of the job first; else the nearest pool, the fullest one
/// first.
std::vector<std::uint32_t> take_spares(std::vector<pool>& pools, std::uint32_t count) {
    const auto home = std::max_element(pools.begin(), pools.end(),
                                       [](const pool& a, const pool& b) { return a.taken < b.taken; });
    const auto home_spine = home->spine_group;
    std::vector<pool*> order;
    for (auto& p : pools) order.push_back(&p);
    std::stable_sort(order.begin(), order.end(), [&](const pool* a, const pool* b) {
        const auto key = [&](const pool* p) {
            return std::tuple(
                p->taken == 0, p->spine_group != home_spine,
                p->taken ? -static_cast<std::int64_t>(p->taken) : static_cast<std::int64_t>(p->left()));
        };
        return key(a) < key(b);
    });
    std::vector<std::uint32_t> spares;
    for (auto* p : order)
        while (spares.size() < count && p->left() > 0) spares.push_back(p->take());
    return spares;
}

struct choice {
    placement placed;
    std::uint32_t broken = 0;  ///< units that straddle
};

choice choose(const fabric& f, const candidates& from, const request& r, const job_layout& layout) {
    const auto units = by_number(layout.units), bundles = by_number(layout.bundles);
    auto pools = make_pools(f, from);
    const auto share = [&](const slots_of_piece& pieces) {
        for (auto& p : pools) p.pieces = 0;
        return share_out(pools, static_cast<std::uint32_t>(pieces.size()), largest(pieces), r.spares);
    };
    choice out;
    const auto* pieces = &bundles;
    out.broken = share(bundles);
    if (out.broken > 0 && bundles.size() != units.size()) {
        pieces = &units;
        out.broken = share(units);
    }
    // Neighbouring pieces, that is data parallel peers, go side by side: group after group, those under one
    // spine together.
    std::stable_sort(pools.begin(), pools.end(), [](const pool& a, const pool& b) {
        return std::pair(a.island, a.spine_group) < std::pair(b.island, b.spine_group);
    });
    out.placed.nodes.assign(r.nodes, none);
    std::size_t next = 0;
    for (auto& p : pools)
        for (std::uint32_t i = 0; i < p.pieces && next < pieces->size(); ++i)
            fill(out.placed.nodes, (*pieces)[next++], p);
    while (next < pieces->size()) fill_straddling(out.placed.nodes, (*pieces)[next++], pools);
    out.placed.spares = take_spares(pools, r.spares);
    out.placed.buddies = choose_buddies(f, out.placed.nodes);
    return out;
}

std::uint32_t island_of(const fabric& f, std::uint32_t host) {
    const auto group = f.hosts[host].leaf_group;
    return group == none ? none : f.leaf_groups[group].island;
}

/// Leaf groups and spine groups that the nodes are in, as share_out weighs them.
std::size_t crossings(const fabric& f, const placement& p) {
    std::vector<std::uint32_t> groups, spines;
    for (const auto h : p.nodes) {
        const auto group = f.hosts[h].leaf_group;
        groups.push_back(group);
        spines.push_back(group == none ? none : f.leaf_groups[group].spine_group);
    }
    const auto several = [](std::vector<std::uint32_t>& v) {
        std::sort(v.begin(), v.end());
        const auto n = std::unique(v.begin(), v.end()) - v.begin();
        return n > 1 ? static_cast<std::size_t>(n) : 0;
    };
    return several(groups) + several(spines);
}

/// Between islands there is a line of a small share of a fabric's bandwidth, or none. So a job stays on one
/// that holds all of it, even where a unit straddles leaf groups by that: the one with the fewest broken
/// units, then crossings, then free hosts.
choice choose_island(const fabric& f, const candidates& from, const request& r, const job_layout& layout) {
    const auto& groups = f.leaf_groups;
    if (std::all_of(groups.begin(), groups.end(),
                    [&](const leaf_group& g) { return g.island == groups.front().island; }))
        return choose(f, from, r, layout);
    std::map<std::uint32_t, std::vector<std::uint32_t>> islands;
    for (const auto h : from.free) islands[island_of(f, h)].push_back(h);
    std::optional<choice> best;
    std::tuple<std::uint32_t, std::size_t, std::size_t> best_key;
    for (const auto& [island, hosts] : islands) {
        if (island == none || hosts.size() < std::size_t{r.nodes} + r.spares) continue;
        auto found = choose(f, {hosts, from.prefer, from.risk}, r, layout);
        const std::tuple key(found.broken, crossings(f, found.placed), hosts.size());
        if (best && key >= best_key) continue;
        best_key = key;
        best = std::move(found);
    }
    return best ? std::move(*best) : choose(f, from, r, layout);
}

/// The pool of each slot of a placement.
std::vector<std::uint32_t> pools_of(const fabric& f, const std::vector<pool>& pools,
                                    const std::vector<std::uint32_t>& nodes) {
    std::vector<std::uint32_t> pool_of_host(f.hosts.size(), none);
    for (std::uint32_t p = 0; p < pools.size(); ++p)
        for (const auto host : pools[p].hosts) pool_of_host[host] = p;
    std::vector<std::uint32_t> out;
    for (const auto host : nodes) out.push_back(pool_of_host[host]);
    return out;
}

/// Slots that a ring of data parallel peers joins, and those of each unit.
slots_of_piece lines_of(const request& r, const job_layout& layout) {
    auto out = by_number(layout.units);
    const auto stride = stride_of(r.dims, dimension::dp), size = r.dims.size(dimension::dp);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> keyed;  // first rank of the ring, slot
    for (std::uint32_t slot = 0; slot < r.nodes; ++slot) {
        const auto rank = layout.ranks[slot].front();
        keyed.emplace_back(rank - rank / stride % size * stride, slot);
    }
    std::sort(keyed.begin(), keyed.end());
    for (std::size_t i = 0; i < keyed.size(); ++i) {
        if (i == 0 || keyed[i].first != keyed[i - 1].first) out.emplace_back();
        out.back().push_back(keyed[i].second);
    }
    return out;
}

/// The layout that costs least by weights_of, and the moves that make it cost less; `start`, which keeps
/// units whole, where nothing does.
placement cheapest(const fabric& f, const candidates& from, const request& r, const job_layout& layout,
                   placement start) {
    auto pools = make_pools(f, from);
    const slot_graph graph(r, layout);
    const distances far(f, pools);
    const seating whole(far, graph, pools, pools_of(f, pools, start.nodes));
    const auto cost_of_start = whole.cost();
    if (cost_of_start <= 0) return start;
    std::map<std::uint32_t, std::size_t> hosts_of_island;
    for (const auto& p : pools) hosts_of_island[p.island] += p.hosts.size();
    std::vector<std::uint32_t> islands{none};
    if (hosts_of_island.size() > 1)
        for (const auto& [island, hosts] : hosts_of_island)
            if (hosts >= r.nodes) islands.push_back(island);
    seating best = whole;
    double least = cost_of_start;
    for (const auto island : islands) {
        auto found = cheapest_layout(far, graph, pools, r, layout, island,
                                     edges_for_orders / static_cast<std::int64_t>(islands.size()));
        const auto cost = found ? found->cost() : least;
        if (cost >= least) continue;
        least = cost;
        best = std::move(*found);
    }
    best.improve(lines_of(r, layout), edges_for_moves);
    if (best.cost() >= cost_of_start) return start;
    placement out;
    for (const auto p : best.pool_of_slot()) out.nodes.push_back(pools[p].take());
    out.spares = take_spares(pools, r.spares);
    out.buddies = choose_buddies(f, out.nodes);
    return out;
}

}  // namespace

result<placement> place(const fabric& f, const candidates& from, const request& r) {
    const std::size_t needed = std::size_t{r.nodes} + r.spares;
    if (from.free.size() < needed)
        return fail(errc::exhausted,
                    fmt::format("{} nodes are needed ({} and {} spares), {} are free on the fabric", needed,
                                r.nodes, r.spares, from.free.size()));
    for (const auto host : from.free)
        if (host >= f.hosts.size())
            return fail(errc::internal, fmt::format("host {} is not on the fabric", host));
    const job_layout layout(r);
    std::vector<float> risk(f.hosts.size());
    std::vector<std::uint32_t> sound;
    for (const auto h : from.free) {
        risk[h] = risk_of(f, from.risk, h);
        if (risk[h] == 0) sound.push_back(h);
    }
    const candidates any_host{from.free, from.prefer, risk}, sound_hosts{sound, from.prefer, risk};
    const auto finish = [&](const candidates& hosts, choice c) {
        // Whole units weigh most where no model says otherwise, and hosts to prefer have shards, which count
        // for more than bytes in a step.
        const bool good = !r.model && (c.broken == 0 || r.nodes > large_job);
        const bool done = good || !from.prefer.empty();
        return done ? std::move(c.placed) : cheapest(f, hosts, r, layout, std::move(c.placed));
    };
    if (sound.size() == from.free.size() || sound.size() < needed)
        return finish(any_host, choose_island(f, any_host, r, layout));
    auto safe = choose_island(f, sound_hosts, r, layout);
    if (safe.broken == 0 || r.model) return finish(sound_hosts, std::move(safe));
    auto any = choose_island(f, any_host, r, layout);
    return any.broken < safe.broken ? finish(any_host, std::move(any)) : finish(sound_hosts, std::move(safe));
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
