// SPDX-License-Identifier: BSD-3-Clause
//
// The fabrics of quality_bench, and the free hosts that a replayed day leaves on them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {
namespace {

constexpr double wan_cost = 50;  ///< a line between sites has a few hundredths of a fabric's bandwidth

/// Leaf group of each host in the order of names.
std::vector<std::uint32_t> group_of_names(const plan_of_site& p) {
    std::vector<std::uint32_t> out(std::size_t{p.groups} * p.group_size);
    for (std::uint32_t h = 0; h < out.size(); ++h) out[h] = h / p.group_size;
    if (!p.mixed) return out;
    constexpr std::uint32_t block = 4;
    std::mt19937 random(20);
    for (auto i = static_cast<std::uint32_t>(out.size() / block); i > 1; --i) {
        const auto j = draw(random, i);
        std::swap_ranges(out.begin() + (i - 1) * block, out.begin() + i * block, out.begin() + j * block);
    }
    return out;
}

void add_group(fabric& f, const plan_of_site& p, std::uint32_t g) {
    auto& group = f.leaf_groups.emplace_back();
    group.id = fmt::format("g{}", g + 1);
    group.spine_group = g / p.spine_group;
    group.island = g / (p.spine_group * p.island);
    for (std::uint32_t rail = 0; rail < p.rails; ++rail) {
        const auto leaf = static_cast<std::uint32_t>(f.switches.size());
        auto& sw = f.switches.emplace_back();
        sw.name = fmt::format("leaf-{}-{}", g + 1, rail + 1);
        sw.box = leaf;
        group.leaves.push_back(leaf);
        for (std::uint16_t port = 0; port < uplinks_of_leaf; ++port)
            f.links.push_back({{node_kind::switch_node, leaf, port},
                               {node_kind::switch_node, group.spine_group, port},
                               {}});
    }
}

struct running {
    double ends = 0;
    hosts nodes;
};

/// The tightest leaf group that holds all, else the largest ones first.
hosts best_fit(const site& s, const std::vector<bool>& busy, std::uint32_t count) {
    std::vector<hosts> bins(s.net.leaf_groups.size());
    for (std::uint32_t h = 0; h < busy.size(); ++h)
        if (!busy[h]) bins[s.net.hosts[h].leaf_group].push_back(h);
    std::stable_sort(bins.begin(), bins.end(),
                     [](const hosts& a, const hosts& b) { return a.size() > b.size(); });
    hosts out;
    for (std::size_t i = 0; i < bins.size() && out.size() < count; ++i) {
        const auto wanted = count - out.size();
        auto pick = i;
        while (pick + 1 < bins.size() && bins[pick + 1].size() >= wanted) ++pick;
        const auto& bin = bins[pick];
        out.insert(out.end(), bin.begin(), bin.begin() + std::min(wanted, bin.size()));
    }
    return out;
}

}  // namespace

std::uint32_t draw(std::mt19937& random, std::uint32_t n) {
    return static_cast<std::uint32_t>(random() * std::uint64_t{n} >> 32);
}
double draw_unit(std::mt19937& random) { return (static_cast<double>(random()) + 0.5) / 4294967296.0; }

site make_site(const plan_of_site& p) {
    site s;
    s.name = p.name;
    s.group_size = p.group_size;
    s.ranks_per_node = p.ranks_per_node;
    auto& f = s.net;
    f.tier_cost = {0, 0, 0, 1, 1 + p.core_oversubscription, wan_cost};
    for (std::uint32_t spine = 0; spine < (p.groups + p.spine_group - 1) / p.spine_group; ++spine) {
        auto& sw = f.switches.emplace_back();
        sw.name = fmt::format("spine-{}", spine + 1);
        sw.level = 1;
        sw.box = spine;
    }
    for (std::uint32_t g = 0; g < p.groups; ++g) add_group(f, p, g);
    for (std::uint32_t island = 1; island <= f.leaf_groups.back().island; ++island)
        f.wan.push_back({0, island, 100});
    const auto group = group_of_names(p);
    for (std::uint32_t h = 0; h < group.size(); ++h) {
        auto& host = f.hosts.emplace_back();
        host.name = fmt::format("n{:04}", h + 1);
        host.leaf_group = group[h];
        f.leaf_groups[group[h]].hosts.push_back(h);
        for (std::uint16_t rail = 0; rail < p.rails; ++rail) {
            host.hcas.push_back(static_cast<std::uint32_t>(f.hcas.size()));
            auto& card = f.hcas.emplace_back();
            card.host = h;
            card.rail = rail;
            card.leaf = f.leaf_groups[group[h]].leaves[rail];
        }
    }
    return s;
}

std::vector<site> all_sites() {
    constexpr plan_of_site plans[] = {
        {"rail-32", 16, 32, 4, 4, 8, 8, 1, false},      {"rail-32-mixed", 16, 32, 4, 4, 8, 8, 1, true},
        {"nvl72-18", 24, 18, 8, 3, 4, 4, 1, false},     {"leaves-10", 40, 10, 40, 1, 1, 8, 1, false},
        {"leaves-16", 24, 16, 12, 2, 1, 8, 1, false},   {"thin-core-16", 32, 16, 8, 4, 8, 8, 7, false},
        {"two-sites-32", 16, 32, 4, 2, 8, 8, 1, false}, {"leaves-20-mixed", 20, 20, 5, 4, 2, 4, 3, true},
    };
    std::vector<site> out;
    for (const auto& p : plans) out.push_back(make_site(p));
    return out;
}

hosts free_after_a_day(const site& s, double occupied, std::uint64_t seed) {
    const auto all = static_cast<std::uint32_t>(s.net.hosts.size());
    const auto wanted = static_cast<std::uint32_t>(occupied * all);
    // Nodes of a job, as often as they are listed.
    constexpr std::uint32_t sizes[] = {1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16, 16, 24, 32};
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    std::vector<bool> busy(all);
    std::vector<running> jobs;
    std::uint32_t used = 0;
    for (int arrival = 0; arrival < 600 && wanted > 0; ++arrival) {
        const auto size = sizes[draw(random, std::size(sizes))];
        const double hours = -8 * std::log(draw_unit(random));
        if (size > wanted) continue;
        while (used + size > wanted) {
            const auto first = std::min_element(jobs.begin(), jobs.end(),
                                                [](const auto& a, const auto& b) { return a.ends < b.ends; });
            for (const auto h : first->nodes) busy[h] = false;
            used -= static_cast<std::uint32_t>(first->nodes.size());
            jobs.erase(first);
        }
        constexpr double between = 0.05;  // hours
        jobs.push_back({arrival * between + hours, best_fit(s, busy, size)});
        for (const auto h : jobs.back().nodes) busy[h] = true;
        used += size;
    }
    hosts out;
    for (std::uint32_t h = 0; h < all; ++h)
        if (!busy[h]) out.push_back(h);
    return out;
}

}  // namespace banyan::topo::quality
