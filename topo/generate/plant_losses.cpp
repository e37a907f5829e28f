// SPDX-License-Identifier: BSD-3-Clause
//
// Whole switches that are gone with their cables, planes of boxes and HCAs, ports that no subnet manager set
// up. A switch is missed by the ports that are dark on all of its neighbours: those between ports that are
// up, or those that the neighbours of its like have. Of a fabric of one spine group neither the first nor the
// last spine is taken, which nobody could miss.
#include <fmt/format.h>

#include "topo/generate/plant.hpp"

namespace banyan::topo::generate {
namespace {

constexpr std::uint16_t permissive_lid = 65535;  // IBTA: what a port has before anybody gave it one

std::string port_text(const blueprint& b, std::uint32_t node, std::uint16_t port) {
    return fmt::format("{} port {}", hex(b.nodes[node].id), port);
}

/// The switch, or one plane of a box, by itself and by the ports that it left dark.
void lose_switch(planter& p, std::uint32_t lost, bool chip) {
    auto& n = p.b.nodes[lost];
    n.gone = true;
    std::vector<std::string> objects{n.name}, where{hex(n.id), hex(n.system)};
    for (const auto& c : p.b.cables) {
        if (c.a != lost && c.b != lost) continue;
        const auto peer = c.a == lost ? c.b : c.a;
        if (p.b.nodes[peer].gone || c.gone) continue;
        where.push_back(port_text(p.b, peer, c.a == lost ? c.b_port : c.a_port));
        // Nobody would lay a dead chip of a leaf to the spines above it.
        if (chip || objects.back() == p.b.nodes[peer].name) continue;
        objects.push_back(p.b.nodes[peer].name);
        where.push_back(hex(p.b.nodes[peer].id));
    }
    p.found(chip ? defect_kind::missing_plane : defect_kind::missing_switch, std::move(objects),
            std::move(where));
}

void lose_spines(planter& p) {
    const auto& n = p.b.n;
    const auto ends = n.spine_groups == 1 ? 1u : 0u;
    std::vector<std::uint32_t> candidates;
    for (std::uint32_t g = 0; g < n.spine_groups; ++g)
        for (auto s = ends; s + ends < n.spines; ++s) candidates.push_back(p.b.spine(g, s, 0));
    p.roll.shuffle(candidates);
    // More than half of a leaf's spines must be left, or nobody can say how many there were.
    const auto most = std::min(p.b.o.odd.lost.spines, std::max(1u, (n.spines - 1) / 2));
    candidates.resize(std::min<std::size_t>(candidates.size(), most));
    for (const auto s : candidates) lose_switch(p, s, false);
}

void lose_cores(planter& p) {
    auto candidates = p.range(p.b.first_core, p.b.n.core_fan * p.b.n.spines);
    p.roll.shuffle(candidates);
    candidates.resize(std::min<std::size_t>(candidates.size(), p.b.o.odd.lost.cores));
    for (const auto c : candidates) lose_switch(p, c, false);
}

void lose_chips(planter& p) {
    auto boxes = p.range(0, p.b.n.groups * p.b.o.rails);
    p.roll.shuffle(boxes);
    boxes.resize(std::min<std::size_t>(boxes.size(), p.b.o.odd.lost.chips));
    for (const auto box : boxes) {
        const auto first = p.b.first_leaf + box * p.b.o.planes, lost = first + p.roll.below(p.b.o.planes);
        lose_switch(p, lost, true);
        auto& d = p.facts.defects.back();
        const auto& name = p.b.nodes[first].name;
        const auto box_name = name.substr(4, name.find(':') - 4);  // without "MF0;"
        d.objects.insert(d.objects.end(), {box_name, fmt::format("{} U{}", box_name, lost - first + 1)});
        for (auto i = first; i < first + p.b.o.planes; ++i) {
            if (i == lost) continue;
            d.objects.push_back(p.b.nodes[i].name);
            d.where.push_back(hex(p.b.nodes[i].id));
        }
    }
}

void lose_planes(planter& p) {
    auto hosts = p.all_hosts();
    p.roll.shuffle(hosts);
    hosts.resize(std::min<std::size_t>(hosts.size(), p.b.o.odd.lost.planes));
    for (const auto h : hosts) {
        const auto hca = p.pick_hca(h);
        if (hca == none) continue;
        auto& c = p.lead(hca, p.roll.below(p.b.o.planes));
        if (p.b.nodes[c.b].gone) continue;
        c.gone = true;
        p.found(defect_kind::missing_plane, {p.b.nodes[hca].name},
                {hex(p.b.nodes[hca].id), port_text(p.b, hca, c.a_port), port_text(p.b, c.b, c.b_port)});
    }
}

/// All HCAs have a LID, but those of some hosts were never given one.
void lose_lids(planter& p) {
    auto hosts = p.all_hosts();
    p.roll.shuffle(hosts);
    hosts.resize(std::max<std::size_t>(
        1, static_cast<std::size_t>(p.b.o.odd.lost.lids * static_cast<double>(hosts.size()))));
    std::vector<std::string> objects, where;
    for (const auto h : hosts) {
        p.b.hosts[h].unready = true;
        objects.push_back(p.b.hosts[h].name);
        for (std::uint32_t r = 0; r < p.b.o.rails; ++r) {
            auto& n = p.b.nodes[p.b.hca(h, r)];
            if (n.gone) continue;
            n.lid = permissive_lid;
            objects.push_back(n.name);
            where.push_back(hex(n.id));
        }
    }
    p.found(defect_kind::no_lid, std::move(objects), std::move(where));
}

}  // namespace

void plant_losses(planter& p) {
    // What is not asked for rolls no dice: the rest stays as it is without.
    const auto& lost = p.b.o.odd.lost;
    if (lost.spines > 0) lose_spines(p);
    if (lost.cores > 0) lose_cores(p);
    if (lost.chips > 0) lose_chips(p);
    if (lost.planes > 0) lose_planes(p);
    if (lost.lids > 0) lose_lids(p);
}

}  // namespace banyan::topo::generate
