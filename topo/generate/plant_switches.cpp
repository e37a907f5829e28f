// SPDX-License-Identifier: BSD-3-Clause
//
// Defects of switches and of the mesh between them. A missing link has two ends, and a report lays it to one:
// so a spine that is to be at fault loses links to at least three leaves of which none loses more than two,
// and a leaf that is to be at fault loses them to at least as many spines as any of these loses leaves.
// Neither touches the other's switches, and no block of the mesh loses more than a part of its links.
#include <map>

#include "topo/generate/plant.hpp"

namespace banyan::topo::generate {
namespace {

using cables_by_peer = std::map<std::uint32_t, std::vector<std::uint32_t>>;

class mesh {
  public:
    explicit mesh(const blueprint& b) : up(b.nodes.size()), down(b.nodes.size()) {
        for (std::uint32_t i = 0; i < b.cables.size(); ++i) {
            const auto& c = b.cables[i];
            if (!is_switch(b.nodes[c.a].what) || b.nodes[c.a].gone || b.nodes[c.b].gone) continue;
            if (b.nodes[c.a].what == b.nodes[c.b].what) continue;  // a global link
            up[c.a][c.b].push_back(i);
            down[c.b][c.a].push_back(i);
        }
        gaps.resize(b.nodes.size());
        least.resize(b.nodes.size(), UINT32_MAX);
    }
    std::vector<cables_by_peer> up, down;
    std::vector<std::uint32_t> gaps;   ///< of each switch: peers that it lost links to
    std::vector<std::uint32_t> least;  ///< of an upper one: the smallest gaps of those that it lost
};

std::vector<std::uint32_t> keys(const cables_by_peer& peers) {
    std::vector<std::uint32_t> out;
    for (const auto& [peer, cables] : peers) out.push_back(peer);
    return out;
}

/// All parallel links of a pair, or one of them.
void cut(planter& p, const std::vector<std::uint32_t>& cables, bool all) {
    if (!all) {
        p.b.cables[cables[p.roll.below(cables.size())]].gone = true;
        return;
    }
    for (const auto i : cables) p.b.cables[i].gone = true;
}

bool lose_leaf(planter& p, std::uint32_t group, std::vector<std::uint32_t>& lost) {
    // Most groups must stay whole, or they would be the odd ones.
    if (lost.size() >= std::max(1u, (p.b.n.groups - 1) / 2) || p.b.hosts_of_group(group) < 4) return false;
    const auto rail = p.roll.below(p.b.o.rails);
    if (p.b.nodes[p.b.leaf(group, rail)].serves || p.b.hosts[group * p.b.o.group_size].off) return false;
    for (std::uint32_t plane = 0; plane < p.b.o.planes; ++plane)
        p.b.nodes[p.b.leaf(group, rail, plane)].gone = true;
    const auto first = group * p.b.o.group_size;
    for (std::uint32_t h = first; h < first + p.b.hosts_of_group(group); ++h)
        p.b.nodes[p.b.hca(h, rail)].gone = true;
    lost.push_back(group);
    return true;
}

/// Named at the end, by all the leaves that are left.
void report_lost_leaves(planter& p, const std::vector<std::uint32_t>& lost) {
    for (const auto group : lost) {
        std::vector<std::string> names, where;
        for (std::uint32_t r = 0; r < p.b.o.rails; ++r)
            for (std::uint32_t plane = 0; plane < p.b.o.planes; ++plane)
                if (const auto& leaf = p.b.nodes[p.b.leaf(group, r, plane)]; !leaf.gone) {
                    names.push_back(leaf.name);
                    where.push_back(hex(leaf.id));
                }
        p.found(defect_kind::missing_leaf, std::move(names), std::move(where));
    }
}

bool unbalance_spine(planter& p, mesh& m, std::uint32_t spine, std::map<std::uint32_t, std::uint32_t>& hit) {
    auto lowers = keys(m.down[spine]);
    if (!p.sound(spine) || lowers.size() < 8) return false;
    // Of the spines of its block at most a quarter; they are those above its first leaf.
    const auto block = keys(m.up[lowers.front()]).front();
    const auto uppers = m.up[lowers.front()].size();
    if (uppers < 2 || hit[block] >= std::max<std::size_t>(1, uppers / 4)) return false;
    std::erase_if(lowers, [&](auto l) { return m.gaps[l] >= 2 || p.node_claimed[l]; });
    const auto wanted = std::max<std::size_t>(3, lowers.size() / 4) + p.roll.below(lowers.size() / 8 + 1);
    if (lowers.size() < 2 * wanted) return false;
    p.roll.shuffle(lowers);
    lowers.resize(wanted);
    const bool all = p.roll.below(2) == 0;
    for (const auto low : lowers) {
        cut(p, m.down[spine][low], all);
        ++m.gaps[low];
    }
    ++hit[block];
    p.node_claimed[spine] = true;
    p.found(defect_kind::asymmetric_spine, {p.b.nodes[spine].name}, {hex(p.b.nodes[spine].id)});
    return true;
}

bool lose_uplinks(planter& p, mesh& m, std::uint32_t low, std::map<std::uint32_t, std::uint32_t>& hit) {
    auto uppers = keys(m.up[low]);
    if (!p.sound(low) || m.gaps[low] > 0 || uppers.empty()) return false;
    const auto block = uppers.front();
    const auto lowers = m.down[block].size();
    std::size_t links = 0;
    for (const auto& [upper, cables] : m.up[low]) links += cables.size();
    // What is usual must show, and some way up must stay.
    if (lowers < 3 || uppers.size() * lowers < 6 || links < 2 || hit[block] >= lowers / 3) return false;
    const auto wanted = 1 + p.roll.below(std::max<std::size_t>(1, uppers.size() / 2));
    std::erase_if(uppers,
                  [&](auto u) { return p.node_claimed[u] || m.gaps[u] + 1 > std::min(m.least[u], wanted); });
    if (uppers.size() < wanted) return false;
    p.roll.shuffle(uppers);
    uppers.resize(wanted);
    for (const auto upper : uppers) {
        const auto& cables = m.up[low][upper];
        cut(p, cables, p.roll.below(2) == 0 && links > cables.size());
        ++m.gaps[upper];
        m.least[upper] = std::min(m.least[upper], wanted);
    }
    m.gaps[low] = wanted;
    ++hit[block];
    p.node_claimed[low] = true;
    p.found(defect_kind::missing_uplink, {p.b.nodes[low].name}, {hex(p.b.nodes[low].id)});
    return true;
}

}  // namespace

void plant_in_switches(planter& p) {
    std::vector<std::uint32_t> lost, spines, lowers;
    p.plant(defect_kind::missing_leaf, p.range(0, p.b.n.groups), p.b.n.groups,
            [&](std::uint32_t group) { return lose_leaf(p, group, lost); });
    report_lost_leaves(p, lost);
    if (!p.wants(defect_kind::asymmetric_spine) && !p.wants(defect_kind::missing_uplink)) return;
    mesh m(p.b);
    for (std::uint32_t i = 0; i < p.b.nodes.size(); ++i) {
        const auto what = p.b.nodes[i].what;
        if (what == role::spine) spines.push_back(i);
        if ((what == role::leaf && !p.b.nodes[i].gone) || (what == role::spine && !m.up[i].empty()))
            lowers.push_back(i);
    }
    std::map<std::uint32_t, std::uint32_t> spines_hit, lowers_hit;  // by block
    const auto spine_count = spines.size(), lower_count = lowers.size();
    p.plant(defect_kind::asymmetric_spine, std::move(spines), spine_count,
            [&](std::uint32_t s) { return unbalance_spine(p, m, s, spines_hit); });
    p.plant(defect_kind::missing_uplink, std::move(lowers), lower_count,
            [&](std::uint32_t l) { return lose_uplinks(p, m, l, lowers_hit); });
}

}  // namespace banyan::topo::generate
