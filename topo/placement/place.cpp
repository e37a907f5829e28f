// SPDX-License-Identifier: BSD-3-Clause
//
// Choosing nodes: whole units into as few leaf groups as possible, balanced over them, the tightest fit
// first, so that whole leaf groups stay free for large jobs. Cost: O(hosts + units * groups used).
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/placement/buddies.hpp"

namespace banyan::topo {
namespace {

/// The free hosts of one leaf group, in the order in which they are taken.
struct pool {
    std::uint32_t group = none;
    std::uint32_t spine_group = 0;
    std::uint32_t preferred = 0;
    std::vector<std::uint32_t> hosts;
    std::uint32_t units = 0;  // assigned so far
    std::size_t taken = 0;    // hosts handed out

    std::size_t left() const { return hosts.size() - taken; }
    std::uint32_t take() { return hosts[taken++]; }
};

std::vector<pool> make_pools(const fabric& f, std::span<const std::uint32_t> free_hosts,
                             std::span<const std::uint32_t> prefer) {
    const std::unordered_set<std::uint32_t> wanted(prefer.begin(), prefer.end());
    std::vector<pool> pools(f.leaf_groups.size());
    for (std::uint32_t g = 0; g < pools.size(); ++g) {
        pools[g].group = g;
        pools[g].spine_group = f.leaf_groups[g].spine_group;
    }
    for (const auto host : free_hosts) {
        const auto group = f.hosts[host].leaf_group;
        if (group == none) {
            // A host without a group is near nobody: a pool of its own.
            pools.emplace_back();
            pools.back().spine_group = none;
        }
        auto& p = group == none ? pools.back() : pools[group];
        p.hosts.push_back(host);
        p.preferred += wanted.contains(host);
    }
    std::erase_if(pools, [](const pool& p) { return p.hosts.empty(); });
    for (auto& p : pools)
        std::stable_partition(p.hosts.begin(), p.hosts.end(),
                              [&](auto host) { return wanted.contains(host); });
    return pools;
}

/// The pool that holds all of it with the least left over; null when none does.
pool* tightest(std::vector<pool>& pools, std::size_t hosts) {
    pool* best = nullptr;
    for (auto& p : pools) {
        if (p.hosts.size() < hosts) continue;
        if (!best || p.preferred > best->preferred ||
            (p.preferred == best->preferred && p.hosts.size() < best->hosts.size()))
            best = &p;
    }
    return best;
}

/// Shares `units` units of `unit_size` hosts over the fewest pools, evenly. Returns the units that fit
/// nowhere whole.
std::uint32_t share(std::vector<pool>& pools, std::uint32_t units, std::uint32_t unit_size) {
    const auto capacity = [&](const pool& p) {
        return static_cast<std::uint32_t>(p.hosts.size()) / unit_size;
    };
    std::vector<pool*> chosen;
    for (auto& p : pools)
        if (capacity(p) > 0) chosen.push_back(&p);
    std::stable_sort(chosen.begin(), chosen.end(), [&](const pool* a, const pool* b) {
        return std::pair(a->preferred, capacity(*a)) > std::pair(b->preferred, capacity(*b));
    });
    std::uint32_t reach = 0;
    std::size_t used = 0;
    while (used < chosen.size() && reach < units) reach += capacity(*chosen[used++]);
    chosen.resize(used);
    std::uint32_t left = units;
    while (left > 0) {
        pool* next = nullptr;
        for (auto* p : chosen)
            if (p->units < capacity(*p) && (!next || p->units < next->units)) next = p;
        if (!next) break;
        ++next->units;
        --left;
    }
    return left;
}

/// Fills the slots of one unit from `source`, or from whatever has most left when it runs dry (a straddling
/// unit).
void fill(std::vector<std::uint32_t>& nodes, const std::vector<std::uint32_t>& slots, pool* source,
          std::vector<pool>& pools) {
    for (const auto slot : slots) {
        if (!source || source->left() == 0)
            source = &*std::max_element(pools.begin(), pools.end(),
                                        [](const pool& a, const pool& b) { return a.left() < b.left(); });
        nodes[slot] = source->take();
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

}  // namespace

result<placement> place(const fabric& f, std::span<const std::uint32_t> free_hosts, const request& r,
                        std::span<const std::uint32_t> prefer) {
    const std::size_t needed = std::size_t{r.nodes} + r.spares;
    if (free_hosts.size() < needed)
        return fail(errc::exhausted,
                    fmt::format("{} nodes are needed ({} and {} spares), {} are free on the fabric", needed,
                                r.nodes, r.spares, free_hosts.size()));
    for (const auto host : free_hosts)
        if (host >= f.hosts.size())
            return fail(errc::internal, fmt::format("host {} is not on the fabric", host));

    const auto units = units_of_slots(r);
    std::vector<std::vector<std::uint32_t>> slots_of_unit;
    for (std::uint32_t slot = 0; slot < r.nodes; ++slot) {
        slots_of_unit.resize(std::max<std::size_t>(slots_of_unit.size(), units[slot] + 1));
        slots_of_unit[units[slot]].push_back(slot);
    }
    const auto unit_count = static_cast<std::uint32_t>(slots_of_unit.size());
    std::size_t unit_size = 0;
    for (const auto& slots : slots_of_unit) unit_size = std::max(unit_size, slots.size());

    auto pools = make_pools(f, free_hosts, prefer);
    pool* single = tightest(pools, needed);
    if (!single) single = tightest(pools, r.nodes);
    if (single)
        single->units = unit_count;
    else
        share(pools, unit_count, static_cast<std::uint32_t>(unit_size));

    placement out;
    out.nodes.assign(r.nodes, none);
    std::uint32_t unit = 0;
    // Neighbouring units, that is data parallel peers, go side by side: group after group, those under one
    // spine together.
    std::stable_sort(pools.begin(), pools.end(),
                     [](const pool& a, const pool& b) { return a.spine_group < b.spine_group; });
    for (auto& p : pools)
        for (std::uint32_t i = 0; i < p.units && unit < unit_count; ++i)
            fill(out.nodes, slots_of_unit[unit++], &p, pools);
    while (unit < unit_count) fill(out.nodes, slots_of_unit[unit++], nullptr, pools);
    out.spares = take_spares(pools, r.spares);
    out.buddies = choose_buddies(f, out.nodes);
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
