// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/scene.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace banyan::topo::draw {
namespace {

void worsen(std::vector<health>& of, std::uint32_t index, health to) {
    if (index < of.size()) of[index] = std::max(of[index], to);
}

void place_switches(const fabric& f, scene& s) {
    s.group_of_switch.assign(f.switches.size(), none);
    std::map<std::uint32_t, std::uint32_t> spine_group_of_number;
    std::vector<std::uint32_t> spine_group_of_group(f.leaf_groups.size());
    for (std::uint32_t g = 0; g < f.leaf_groups.size(); ++g) {
        for (const auto leaf : f.leaf_groups[g].leaves) s.group_of_switch[leaf] = g;
        const auto [at, fresh] =
            spine_group_of_number.try_emplace(f.leaf_groups[g].spine_group, s.spine_groups.size());
        if (fresh) s.spine_groups.emplace_back();
        s.spine_groups[at->second].groups.push_back(g);
        spine_group_of_group[g] = at->second;
    }
    for (std::uint32_t i = 0; i < f.switches.size(); ++i)
        s.group_of_switch[i] = s.group_of_switch[box_of(f, i)];
    std::vector<std::uint32_t> spine_group_of_spine(f.switches.size(), none);
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        const auto a = box_of(f, l.a.index), b = box_of(f, l.b.index);
        for (const auto& [low, high] : {std::pair(a, b), std::pair(b, a)})
            if (s.group_of_switch[low] != none && f.switches[high].level == 1 &&
                spine_group_of_spine[high] == none)
                spine_group_of_spine[high] = spine_group_of_group[s.group_of_switch[low]];
    }
    for (std::uint32_t i = 0; i < f.switches.size(); ++i) {
        if (box_of(f, i) != i) continue;
        const auto level = f.switches[i].level;
        if (spine_group_of_spine[i] != none)
            s.spine_groups[spine_group_of_spine[i]].spines.push_back(i);
        else if (level >= 2 && level != UINT8_MAX)
            s.cores.push_back(i);
        else if (s.group_of_switch[i] == none)
            s.stray.push_back(i);
    }
    const auto by_name = [&](std::uint32_t a, std::uint32_t b) {
        return f.switches[a].name < f.switches[b].name;
    };
    for (auto& p : s.spine_groups) std::stable_sort(p.spines.begin(), p.spines.end(), by_name);
    std::stable_sort(s.cores.begin(), s.cores.end(), by_name);
    std::stable_sort(s.cores.begin(), s.cores.end(),
                     [&](auto a, auto b) { return f.switches[a].level > f.switches[b].level; });
}

void apply_defects(const fabric& f, scene& s) {
    s.defects = find_targets(f);
    for (const auto& d : s.defects) {
        if (d.notice) continue;
        if (!d.of_group)
            for (const auto i : d.switches) worsen(s.switches, box_of(f, i), d.severity);
        for (const auto i : d.hcas) worsen(s.hcas, i, d.severity);
        for (const auto i : d.hosts) worsen(s.hosts, i, d.severity);
        for (const auto i : d.links) worsen(s.links, i, d.severity);
        std::vector<std::uint32_t> touched;
        for (const auto i : d.switches) touched.push_back(s.group_of_switch[i]);
        for (const auto i : d.hosts) touched.push_back(f.hosts[i].leaf_group);
        for (const auto i : d.hcas)
            if (f.hcas[i].host != none) touched.push_back(f.hosts[f.hcas[i].host].leaf_group);
        for (const auto i : d.links)
            for (const auto& end : {f.links[i].a, f.links[i].b})
                if (end.kind == node_kind::switch_node) touched.push_back(s.group_of_switch[end.index]);
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        for (const auto g : touched)
            if (g != none) {
                // What is broken is painted; what it stands in counts.
                if (d.of_group) worsen(s.groups, g, d.severity);
                ++s.defects_of_group[g];
            }
    }
    for (std::uint32_t i = 0; i < f.hcas.size(); ++i)
        if (f.hcas[i].host != none) worsen(s.hosts, f.hcas[i].host, s.hcas[i]);
}

void count_rates(const fabric& f, scene& s) {
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint32_t> links;
    for (const auto& l : f.links) ++links[{l.rate.width, l.rate.lane_gbps10}];
    for (const auto& [rate, n] : links) s.rates.push_back({{rate.first, rate.second}, n});
    std::stable_sort(s.rates.begin(), s.rates.end(),
                     [](const auto& a, const auto& b) { return speed(a.rate) > speed(b.rate); });
}

}  // namespace

scene make_scene(const fabric& f) {
    scene s;
    s.switches.resize(f.switches.size());
    s.hcas.resize(f.hcas.size());
    s.hosts.resize(f.hosts.size());
    s.links.resize(f.links.size());
    s.groups.resize(f.leaf_groups.size());
    s.defects_of_group.resize(f.leaf_groups.size());
    place_switches(f, s);
    apply_defects(f, s);
    s.bundles = bundle_links(f, s);
    count_rates(f, s);
    return s;
}

std::string rate_text(const link_rate& r) {
    static constexpr std::pair<std::uint16_t, const char*> names[] = {
        {20, "SDR"},  {40, "DDR"},  {80, "QDR"},   {100, "FDR10"}, {136, "FDR"},
        {250, "EDR"}, {500, "HDR"}, {1000, "NDR"}, {2000, "XDR"}};
    if (speed(r) == 0) return "speed not known";
    for (const auto& [lane, name] : names)
        if (lane == r.lane_gbps10) return fmt::format("{} Gbit/s ({}x {})", speed(r), r.width, name);
    return fmt::format("{} Gbit/s ({} lanes)", speed(r), r.width);
}

std::string counted(std::size_t n, const std::string& one, const std::string& many) {
    // Thousands are set apart: these figures reach six digits.
    auto digits = std::to_string(n);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return digits + " " + (n == 1 ? one : many.empty() ? one + "s" : many);
}

}  // namespace banyan::topo::draw
