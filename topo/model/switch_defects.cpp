// SPDX-License-Identifier: BSD-3-Clause
//
// Leaf groups against groups of the same kind of hosts, leaves without hosts, and names of switches.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

std::string pattern_of(const fabric& f, const leaf_group& g) {
    std::vector<std::string> patterns;
    for (const auto h : g.hosts) patterns.push_back(name_pattern(f.hosts[h].name));
    return usual(std::move(patterns)).value;
}

void find_missing_leaves(state& s) {
    auto& f = s.out;
    const auto expected = expected_leaves(f);
    for (std::size_t i = 0; i < f.leaf_groups.size(); ++i) {
        const auto& g = f.leaf_groups[i];
        if (g.leaves.size() >= expected[i]) continue;
        std::vector<std::string> names, where;
        for (const auto leaf : g.leaves) {
            names.push_back(label(s, leaf));
            where.push_back(hex(f.switches[leaf].id));
        }
        s.report("missing-leaf", std::move(names),
                 fmt::format("{} has {}, most groups of such hosts have {}", g.id,
                             counted(g.leaves.size(), "leaf", "leaves"), expected[i]),
                 0.9, std::move(where));
    }
}

void find_bad_names(state& s) {
    std::map<std::string_view, std::vector<const switch_node*>> by_name;
    for (std::uint32_t i = 0; i < s.out.switches.size(); ++i) {
        const auto& sw = s.out.switches[i];
        if (is_factory_switch(sw.name) || sw.name.empty()) {
            if (s.counts_only("factory-name")) continue;
            s.report("factory-name", {hex(sw.id)},
                     fmt::format("the switch is called \"{}\": it was never given a name; it goes by {}",
                                 sw.name, s.names.made_up(i)),
                     1.0, {hex(sw.id)});
        } else {
            by_name[sw.name].push_back(&sw);
        }
    }
    for (const auto& [name, switches] : by_name) {
        if (switches.size() < 2) continue;
        std::vector<std::string> guids;
        for (const auto* sw : switches) guids.push_back(hex(sw->id));
        s.report("duplicate-name", std::move(guids), fmt::format("switches that are all called \"{}\"", name),
                 1.0);
    }
}

/// Leaves that are joined to each other instead of to something above: a torus, a ring, a dragonfly of single
/// switches. What is near what above a leaf cannot be known from levels.
void find_unknown_shape(state& s) {
    const auto& f = s.out;
    std::vector<bool> joined(f.switches.size());
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        if (f.switches[l.a.index].level != 0 || f.switches[l.b.index].level != 0) continue;
        joined[f.switches[l.a.index].box] = joined[f.switches[l.b.index].box] = true;
    }
    std::size_t leaves = 0, among = 0;
    for (std::uint32_t i = 0; i < f.switches.size(); ++i) {
        if (f.switches[i].level != 0 || f.switches[i].box != i) continue;
        ++leaves;
        among += joined[i];
    }
    // Two leaves back to back are as near as can be.
    if (leaves < 3 || 2 * among <= leaves) return;
    s.report(
        "unknown-shape", {"fabric"},
        fmt::format("{} of {} leaves are joined to each other: no tree of levels; all leaf groups count as "
                    "equally far from each other",
                    among, leaves),
        1.0);
}

/// An HCA has one leaf here. Of one that has ports on two, half of what it can do is not in the model.
void find_second_leaves(state& s) {
    const auto& f = s.out;
    std::vector<bool> on_two(f.hcas.size());
    for (const auto& l : f.links) {
        const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
        if (hca.kind != node_kind::hca || sw.kind != node_kind::switch_node) continue;
        const auto& h = f.hcas[hca.index];
        if (h.host != none && h.leaf != none && f.switches[sw.index].box != h.leaf) on_two[hca.index] = true;
    }
    const auto many = static_cast<std::size_t>(std::count(on_two.begin(), on_two.end(), true));
    if (many == 0) return;
    s.report("unknown-shape", {"fabric"},
             fmt::format("{} ports on two switches: each counts for the leaf of its first port alone, "
                         "and rails and capacity are what those give",
                         counted(many, "HCA has", "HCAs have")),
             1.0);
}

/// On how many leaves most hosts of the group are, also on those that other hosts made another group of.
std::size_t leaves_of_a_host(const fabric& f, const leaf_group& g) {
    std::vector<std::size_t> counts;
    for (const auto h : g.hosts) {
        std::set<std::uint32_t> leaves;
        for (const auto i : f.hosts[h].hcas)
            if (f.hcas[i].leaf != none) leaves.insert(f.hcas[i].leaf);
        counts.push_back(leaves.size());
    }
    return usual(std::move(counts)).value;
}

}  // namespace

/// Groups of such hosts have so many leaves. One that has far fewer has hosts of another kind (two HCAs
/// beside eight), unless its rails have a hole.
std::vector<std::size_t> expected_leaves(const fabric& f) {
    std::map<std::string, std::vector<std::size_t>> by_pattern;
    std::vector<std::string> patterns;
    for (const auto& g : f.leaf_groups) {
        patterns.push_back(pattern_of(f, g));
        by_pattern[patterns.back()].push_back(g.leaves.size());
    }
    std::map<std::string, usual_value<std::size_t>> usual_of;
    for (auto& [pattern, counts] : by_pattern) usual_of[pattern] = usual(std::move(counts));
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < f.leaf_groups.size(); ++i) {
        const auto& g = f.leaf_groups[i];
        const auto& most = usual_of[patterns[i]];
        const auto have = g.leaves.size();
        const bool hole = !g.rails.empty() && g.rails.back() >= have;
        const bool few_lack = most.value > have && most.value - have <= std::max<std::size_t>(1, have / 3);
        const bool lacks = have > 0 && (hole || (few_lack && have > 1)) && most.value > have &&
                           leaves_of_a_host(f, g) < most.value;
        out.push_back(lacks ? most.value : have);
    }
    return out;
}

void find_idle_leaves(state& s) {
    const auto& f = s.out;
    std::vector<std::size_t> up(f.switches.size());
    for (const auto& l : f.links)
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node)
            for (const auto& [low, high] : {std::pair(l.a.index, l.b.index), std::pair(l.b.index, l.a.index)})
                up[f.switches[low].box] += f.switches[low].level == 0 && f.switches[high].level == 1;
    std::vector<std::size_t> of_leaves;
    for (const auto& g : f.leaf_groups)
        for (const auto leaf : g.leaves) of_leaves.push_back(up[leaf]);
    const auto expected = usual(std::move(of_leaves)).value;
    for (std::uint32_t i = 0; i < f.switches.size(); ++i) {
        if (f.switches[i].level != 0 || s.off_confidence[i] == 0 || f.switches[i].box != i) continue;
        const auto few = up[i] < expected ? fmt::format(", with {} of {} uplinks", up[i], expected) : "";
        s.report("off", {label(s, i)},
                 (s.off_confidence[i] < 0.7
                      ? "it has no host, and the same spines as the leaves: their like, or a core"
                      : "no host is on it; it has the same spines as the leaves around it") +
                     few,
                 s.off_confidence[i], {hex(f.switches[i].id)});
    }
}

void find_switch_defects(state& s) {
    find_unknown_shape(s);
    find_second_leaves(s);
    find_missing_leaves(s);
    find_missing_links(s);
    find_bad_names(s);
}

}  // namespace banyan::topo::build
