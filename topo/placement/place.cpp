// SPDX-License-Identifier: BSD-3-Clause
//
// One placement: an assignment by packing, on one island where one holds the job, one with a lower
// objective, and then hosts, spares and buddies. docs/decisions/004 has the whole.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/placement/buddies.hpp"
#include "topo/placement/construct_units.hpp"
#include "topo/placement/equal_hosts.hpp"
#include "topo/placement/improve.hpp"
#include "topo/placement/joined_parts.hpp"
#include "topo/placement/packing.hpp"

namespace banyan::topo {
namespace {

/// Of the bins that are used.
std::size_t crossings_of(const assignment& a) {
    std::vector<std::uint32_t> spine_groups;
    for (const auto& b : a.free.bins)
        if (b.taken > 0) spine_groups.push_back(b.at.spine_group);
    return crossings(std::move(spine_groups));
}

/// Between islands there is a line of a small share of a fabric's bandwidth, or none. So a job stays on one
/// that holds all of it, even where a unit straddles leaf groups by that. An assignment for each of some, the
/// one with the fewest broken units first, then crossings, then free hosts.
std::vector<assignment> on_one_island(const fabric& f, const candidates& from, const request& r,
                                      const job_slots& job, work& limit) {
    constexpr std::size_t some = 4;
    std::map<std::uint32_t, std::vector<std::uint32_t>> islands;
    if (has_islands(f))
        for (const auto h : from.free)
            if (const auto group = f.hosts[h].leaf_group; group != none)
                islands[f.leaf_groups[group].island].push_back(h);
    using key = std::tuple<std::uint32_t, std::size_t, std::size_t>;
    std::map<key, assignment> best;
    for (const auto& [island, hosts] : islands) {
        if (hosts.size() < std::size_t{r.nodes} + r.spares) continue;
        if (!best.empty() && !limit.any()) break;
        auto found = construct_whole_units(f, {hosts, from.prefer, from.risk}, r, job, limit);
        const key order(found.broken, crossings_of(found), hosts.size());
        best.try_emplace(order, std::move(found));  // of those that are alike the first
        if (best.size() > some) best.erase(std::prev(best.end()));
    }
    std::vector<assignment> out;
    for (auto& [order, found] : best) out.push_back(std::move(found));
    if (out.empty()) out.push_back(construct_whole_units(f, from, r, job, limit));
    return out;
}

/// The one with the least objective after a search from each.
assignment best_of(const fabric& f, const request& r, const job_slots& job, std::vector<assignment> from,
                   work& limit) {
    std::optional<assignment> best;
    for (auto& start : from) {
        if (best && !limit.any()) break;
        auto found = lower_objective(f, r, job, std::move(start), limit);
        if (!best || found.objective < best->objective) best = std::move(found);
    }
    return std::move(*best);
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
                    fmt::format("{} needed ({} and {}), {} free on the fabric",
                                counted(needed, "node is", "nodes are"), r.nodes, counted(r.spares, "spare"),
                                from.free.empty() ? "none is" : counted(from.free.size(), "is", "are")));
    for (const auto host : from.free)
        if (host >= f.hosts.size())
            return fail(errc::internal, fmt::format("host {} is not on the fabric", host));
    const job_slots job(r);
    limit.spend(f.hosts.size() + r.nodes);
    std::vector<float> risk(f.hosts.size());
    for (const auto h : from.free) risk[h] = risk_of(f, from.risk, h);
    const auto hosts = equal_hosts(f, {from.free, from.prefer, risk, from.kind}, needed);
    auto chosen = on_one_island(f, {hosts, from.prefer, risk}, r, job, limit);
    // Hosts to prefer have shards, which count for more than bytes in a step.
    auto best =
        from.prefer.empty() ? best_of(f, r, job, std::move(chosen), limit) : std::move(chosen.front());
    return take_hosts(f, r, job, std::move(best), limit);
}

/// The kind of the weakest host.
host_kind weakest_of(const fabric& f, const candidates& from, const placement& p) {
    auto out = kind_of(f, from.kind, p.nodes.front());
    for (const auto h : p.nodes)
        if (const auto kind = kind_of(f, from.kind, h); kind > out) out = kind;
    return out;
}

/// In the part of the fabric with the best hosts, and where it costs least, of a few that hold the job.
result<placement> place_in_a_part(const fabric& f, const candidates& from, const request& r, work& limit) {
    constexpr std::size_t some = 4;
    const auto needed = std::size_t{r.nodes} + r.spares;
    if (!has_islands(f) || from.free.size() < needed) return place_within(f, from, r, limit);
    const auto parts = joined_parts(f, from.free);
    if (parts.size() < 2) return place_within(f, from, r, limit);
    std::optional<placement> best;
    std::pair<host_kind, double> least;
    std::size_t tried = 0;
    for (const auto& part : parts) {
        if (part.size() < needed || tried == some || (best && !limit.any())) continue;
        ++tried;
        BANYAN_TRY(auto found, place_within(f, {part, from.prefer, from.risk, from.kind}, r, limit));
        const std::pair cost(weakest_of(f, from, found), weighted_cost(f, r, found));
        if (best && cost >= least) continue;
        least = cost;
        best = std::move(found);
    }
    if (best) return std::move(*best);
    return fail(errc::exhausted,
                fmt::format("{} needed, and of the {} parts of the fabric that nothing joins the largest has "
                            "{} free",
                            counted(needed, "node is", "nodes are"), parts.size(), parts.back().size()),
                "[[wan]] of the site file tells lines between parts");
}

}  // namespace

result<placement> place(const fabric& f, const candidates& from, const request& r, work& all) {
    work limit(std::min(all.left(), most_work_of_placement));
    auto out = place_in_a_part(f, from, r, limit);
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
    work limit(most_work_of_placement);
    return place_within(f, candidates{sorted, {}, {}}, alone, limit);
}

}  // namespace banyan::topo
