// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/capacity.hpp>
#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo {
namespace {

const char* level_name(unsigned level) {
    static constexpr const char* names[] = {"leaves", "spines", "cores"};
    return level < std::size(names) ? names[level] : "upper switches";
}

/// In tenths of a Gbit/s, which are whole: sums of thousands of links stay exact.
double tenths(const link_rate& r) { return std::uint32_t{r.width} * r.lane_gbps10; }

void add_rail(tier_capacity& t, std::size_t rail, double rate) {
    if (t.by_rail.size() <= rail) t.by_rail.resize(rail + 1);
    t.by_rail[rail] += rate;
}

/// Of a dragonfly, what leads from one group's spines to another's: each link counts at both ends, as what a
/// group can send. 0 where there are cores, or where the spines are of one group.
double between_groups(const fabric& f) {
    std::vector<std::uint32_t> group_of_leaf(f.switches.size(), none),
        group_of_spine(f.switches.size(), none);
    for (const auto& g : f.leaf_groups)
        for (const auto leaf : g.leaves) group_of_leaf[leaf] = g.spine_group;
    const auto each = [&](auto visit) {
        for (const auto& l : f.links)
            if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node) visit(l);
    };
    each([&](const link& l) {
        for (const auto& [low, high] : {std::pair(l.a.index, l.b.index), std::pair(l.b.index, l.a.index)})
            if (const auto group = group_of_leaf[f.switches[low].box];
                group != none && f.switches[low].level == 0 && f.switches[high].level == 1)
                group_of_spine[high] = group;
    });
    double out = 0;
    each([&](const link& l) {
        const auto a = group_of_spine[l.a.index], b = group_of_spine[l.b.index];
        if (a != none && b != none && a != b) out += 2 * tenths(l.rate);
    });
    return out;
}

}  // namespace

double gbps(const link_rate& r) { return tenths(r) / 10; }

unsigned levels(const fabric& f) {
    unsigned out = 0;
    for (const auto& sw : f.switches)
        if (sw.level != UINT8_MAX) out = std::max(out, sw.level + 1u);
    return out;
}

std::vector<tier_capacity> capacity(const fabric& f) {
    std::vector<tier_capacity> out(std::max(1u, levels(f)));
    out[0].name = "hosts to leaves";
    for (unsigned tier = 1; tier < out.size(); ++tier)
        out[tier].name = fmt::format("{} to {}", level_name(tier - 1), level_name(tier));
    // A leaf of no group has no compute host: what leads up from it carries nothing of theirs.
    constexpr auto idle = SIZE_MAX;
    std::vector<std::size_t> rail_of_leaf(f.switches.size(), idle);
    for (const auto& g : f.leaf_groups)
        for (std::size_t rail = 0; rail < g.leaves.size(); ++rail)
            rail_of_leaf[g.leaves[rail]] = rail_at(g, rail);
    for (const auto& l : f.links) {
        const auto rate = tenths(l.rate);
        const auto bad = is_unsound(l) ? rate : 0;
        if (l.a.kind == node_kind::hca || l.b.kind == node_kind::hca) {
            const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
            const auto& h = f.hcas[hca.index];
            if (h.host == none || h.leaf == none || f.switches[h.leaf].level != 0) continue;
            // A second port on another leaf: nor is counted what leads up from there.
            if (sw.kind != node_kind::switch_node || f.switches[sw.index].box != h.leaf) continue;
            out[0].gbps += rate;
            out[0].bad_gbps += bad;
            add_rail(out[0], h.rail, rate);
            continue;
        }
        auto low = l.a.index, high = l.b.index;
        if (f.switches[low].level > f.switches[high].level) std::swap(low, high);
        const unsigned level = f.switches[low].level;
        if (f.switches[high].level == UINT8_MAX || f.switches[high].level != level + 1) continue;
        if (level == 0 && rail_of_leaf[f.switches[low].box] == idle) continue;
        out[level + 1].gbps += rate;
        out[level + 1].bad_gbps += bad;
        if (level == 0) add_rail(out[1], rail_of_leaf[f.switches[low].box], rate);
    }
    if (out.size() == 2)
        if (const auto sum = between_groups(f); sum > 0) out.push_back({"spines to spines", sum, 0, {}});
    for (auto& t : out) {
        t.gbps /= 10;
        t.bad_gbps /= 10;
        for (auto& rail : t.by_rail) rail /= 10;
    }
    return out;
}

by_tier<double> tier_costs(const fabric& f) {
    const auto tiers = capacity(f);
    const auto lack = [&](std::size_t up) {
        if (up >= tiers.size()) return 1.0;
        // A host with a bad link is slow, and still sends what it sends over the others.
        const auto below = tiers[up - 1].gbps, above = tiers[up].gbps - tiers[up].bad_gbps;
        return below > 0 && above > 0 ? std::max(1.0, below / above) : 1.0;
    };
    // A GPU of 2024 sends nine times as fast over NVLink (900 GB/s) as over its HCA (800 Gbit/s). Without
    // NVLink between hosts every byte goes over the HCA, and the leaf costs nothing more.
    constexpr double nvlink_over_hca = 9;
    const bool joined = std::ranges::any_of(f.hosts, [](const host& h) { return h.nvlink != none; });
    const double leaf = joined ? nvlink_over_hca : 0, spine = leaf + lack(1), core = spine + lack(2);
    double wan = 64;
    std::uint32_t islands = 1;
    for (const auto& g : f.leaf_groups) islands = std::max(islands, g.island + 1);
    double thinnest = 0;
    for (const auto& w : f.wan)
        if (w.gbps > 0 && (thinnest == 0 || w.gbps < thinnest)) thinnest = w.gbps;
    if (thinnest > 0 && tiers.size() > 1) wan = tiers[1].gbps / islands / thinnest;
    return {0, 0, leaf, spine, core, std::max(wan, core + 1)};
}

std::vector<leaf_load> leaf_loads(const fabric& f) {
    std::vector<leaf_load> out;
    std::vector<std::uint32_t> at_leaf(f.switches.size(), none);
    for (const auto& g : f.leaf_groups)
        for (const auto leaf : g.leaves) {
            if (at_leaf[leaf] != none) continue;
            at_leaf[leaf] = static_cast<std::uint32_t>(out.size());
            out.push_back({leaf, 0, 0});
        }
    for (const auto& l : f.links) {
        if (l.a.kind == node_kind::hca || l.b.kind == node_kind::hca) {
            const auto& a = l.a.kind == node_kind::hca ? l.a : l.b;
            const auto& b = l.a.kind == node_kind::hca ? l.b : l.a;
            if (b.kind != node_kind::switch_node || f.hcas[a.index].host == none) continue;
            if (const auto at = at_leaf[f.switches[b.index].box]; at != none)
                out[at].down_gbps += tenths(l.rate);
            continue;
        }
        for (const auto& [low, high] : {std::pair(l.a.index, l.b.index), std::pair(l.b.index, l.a.index)}) {
            const auto at = f.switches[low].level == 0 && f.switches[high].level == 1
                                ? at_leaf[f.switches[low].box]
                                : none;
            if (at != none) out[at].up_gbps += tenths(l.rate);
        }
    }
    for (auto& l : out) l.down_gbps /= 10, l.up_gbps /= 10;
    return out;
}

namespace {

/// The rates of all planes together.
double gbps_of(const hca& h) { return gbps(h.rate) * std::max<unsigned>(1, h.planes); }

double gbps_of(const fabric& f, const host& h) {
    double slowest = 0;
    for (const auto index : h.hcas)
        if (const auto rate = gbps_of(f.hcas[index]); rate > 0 && f.hcas[index].leaf != none)
            slowest = slowest > 0 ? std::min(slowest, rate) : rate;
    return slowest * h.rails;
}

}  // namespace

void mark_slow_hosts(fabric& f) {
    for (auto& h : f.hosts) h.gbps = gbps_of(f, h);
    std::vector<double> rates;
    std::vector<bool> on_bad(f.hcas.size()), below_bad(f.switches.size());
    for (const auto& l : f.links) {
        if (!is_unsound(l)) continue;
        for (const auto& [e, other] : {std::pair(l.a, l.b), std::pair(l.b, l.a)})
            if (e.kind == node_kind::hca)
                on_bad[e.index] = true;
            else if (e.kind == node_kind::switch_node && other.kind == node_kind::switch_node &&
                     f.switches[e.index].level < f.switches[other.index].level)
                below_bad[f.switches[e.index].box] = true;
    }
    const auto expected = build::expected_leaves(f);
    std::vector<bool> has_planes(f.switches.size());
    for (const auto& sw : f.switches)
        if (sw.plane > 0) has_planes[sw.box] = true;
    // Of all its planes together; a second port on a leaf of its own is not reckoned.
    const auto rate_of = [&](const hca& h) {
        return gbps(h.rate) * (h.leaf != none && has_planes[h.leaf] ? std::max<unsigned>(h.planes, 1) : 1);
    };
    for (std::size_t g = 0; g < f.leaf_groups.size(); ++g) {
        auto& group = f.leaf_groups[g];
        group.thin = std::ranges::any_of(group.leaves, [&](auto leaf) { return below_bad[leaf]; });
        const bool lacks = group.leaves.size() < expected[g];
        rates.clear();
        for (const auto host : group.hosts)
            for (const auto h : f.hosts[host].hcas)
                if (const auto rate = rate_of(f.hcas[h]); rate > 0) rates.push_back(rate);
        const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
        if (!rates.empty()) std::nth_element(rates.begin(), middle, rates.end());
        for (const auto host : group.hosts)
            f.hosts[host].slow =
                lacks || std::any_of(f.hosts[host].hcas.begin(), f.hosts[host].hcas.end(), [&](auto h) {
                    const auto rate = rate_of(f.hcas[h]);
                    return on_bad[h] || (rate > 0 && rate < *middle);
                });
    }
}

double oversubscription(const fabric& f) {
    const auto tiers = capacity(f);
    return tiers.size() > 1 && tiers[1].gbps > 0 ? tiers[0].gbps / tiers[1].gbps : 0;
}

}  // namespace banyan::topo
