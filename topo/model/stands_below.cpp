// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/switch_graph.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {

/// How most switches of a level are called.
std::string lower_switches::usual_name(unsigned level) const {
    std::vector<std::string> all;
    for (const auto& sw : f_.switches)
        if (sw.level == level && !is_factory_switch(sw.name)) all.push_back(name_pattern(sw.name));
    const auto most = usual(std::move(all));
    return most.share() > 0.5 ? most.value : std::string();
}

/// 1: called as leaves are, -1: called as what stands above them, 0: names say nothing.
int lower_switches::name_says_leaf(std::uint32_t sw) {
    if (!names_known_) {
        leaf_name_ = usual_name(0);
        spine_name_ = usual_name(1);
        names_known_ = true;
    }
    const auto& name = f_.switches[sw].name;
    // Line cards stand above where the leaves are boxes of their own.
    if (is_line_card(name) && !leaf_name_.empty() && !is_line_card(leaf_name_)) return -1;
    if (const auto role = role_in_name(name); role != switch_role::untold)
        return role == switch_role::leaf ? 1 : -1;
    const auto pattern = name_pattern(name);
    if (name.empty() || is_factory_switch(name) || leaf_name_ == spine_name_) return 0;
    return pattern == leaf_name_ ? 1 : pattern == spine_name_ ? -1 : 0;
}

float lower_switches::sure(std::uint32_t sw, unsigned level) {
    if (level == 0) return 0;
    std::vector<std::uint32_t> mine;
    for (const auto p : g_.peers[sw])
        if (f_.switches[p].level == level) mine.push_back(p);
    if (on_outer_ports(sw, mine)) return 0.95f;
    if (level > 1 && leads_to_dead_ends(sw, level)) return 0.8f;
    const auto like =
        compare_.nearest(sw, mine, [&](std::uint32_t i) { return f_.switches[i].level == level - 1; });
    if (like.sw == none) return 0;
    std::size_t its = 0;
    for (const auto p : g_.peers[like.sw]) its += f_.switches[p].level == level;
    const auto all = mine.size() + its - like.shared;
    const auto alike = static_cast<double>(like.shared) / static_cast<double>(all);
    const int name = level == 1 ? name_says_leaf(sw) : 0;
    // Peers of several blocks are what an upper one has.
    if (4 * like.shared < 3 * mine.size()) return 0;
    if (alike < 0.75) return name > 0 ? 0.8f : on_ports_of_lowers(sw, level) ? 0.7f : 0;
    if (name < 0 && only_block(level)) return 0;
    return name > 0 ? 0.95f : name == 0 && only_block(level) ? 0.6f : 0.9f;
}

/// Whether it leads from `level` to switches that lead nowhere else: leaves without hosts below a spine of
/// their own. Above the cores such would be for nothing.
bool lower_switches::leads_to_dead_ends(std::uint32_t sw, unsigned level) const {
    const auto beside = [&](std::uint32_t i) {
        return f_.switches[i].level == no_level &&
               std::ranges::any_of(g_.peers[i], [&](auto p) { return f_.switches[p].level == level; });
    };
    return std::ranges::any_of(g_.peers[sw], [&](auto end) {
        return f_.switches[end].level == no_level && !beside(end) &&
               std::ranges::all_of(g_.peers[end], beside);
    });
}

void lower_switches::list_ends() {
    if (!ends_.empty()) return;
    for (const auto& l : f_.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        ends_.push_back({l.a.index, l.b.index, l.a.port});
        ends_.push_back({l.b.index, l.a.index, l.b.port});
    }
    std::sort(ends_.begin(), ends_.end());
}

/// Nothing but spine cards is above a director's line cards: on their other ports are boxes below. A spine
/// card that was never named is cabled as those that were.
bool lower_switches::on_outer_ports(std::uint32_t sw, const std::vector<std::uint32_t>& mine) {
    const auto is_spine = [&](std::uint32_t i) {
        return role_in_name(f_.switches[i].name) == switch_role::upper;
    };
    if (role_in_name(f_.switches[sw].name) != switch_role::untold) return false;
    const auto cards = std::ranges::count_if(mine, [&](auto p) { return is_line_card(f_.switches[p].name); });
    if (2 * cards <= std::ssize(mine)) return false;
    list_ends();
    const auto links = [&](std::uint32_t i) {
        return std::ranges::equal_range(ends_, i, {}, [](const auto& e) { return std::get<0>(e); }).size();
    };
    const auto like = compare_.nearest(sw, mine, is_spine);
    if (like.sw == none) return false;
    const auto its = g_.peers[like.sw].size(), all = mine.size() + its - like.shared;
    const auto own = links(sw), theirs = links(like.sw);
    return 4 * like.shared < 3 * all || 4 * std::min(own, theirs) < 3 * std::max(own, theirs);
}

/// Whether its cables are on ports by which the other switches of that level lead down, on each of them.
bool lower_switches::on_ports_of_lowers(std::uint32_t sw, unsigned level) {
    list_ends();
    std::map<std::uint16_t, std::pair<std::size_t, std::size_t>> leads;  // by port: down; elsewhere
    for (const auto& [from, to, port] : ends_)
        if (f_.switches[from].level == level && to != sw)
            ++(f_.switches[to].level == level - 1 ? leads[port].first : leads[port].second);
    return std::all_of(ends_.begin(), ends_.end(), [&](const auto& e) {
        const auto [from, to, port] = e;
        if (to != sw || f_.switches[from].level != level) return true;
        const auto at = leads.find(port);
        return at != leads.end() && at->second.first >= 2 && at->second.second == 0;
    });
}

/// Whether all switches at the level share the same peers below: then those above may have them too, and
/// only names tell a core from a leaf without hosts.
bool lower_switches::only_block(unsigned level) {
    if (one_block_level_ == level) return one_block_;
    one_block_level_ = level;
    one_block_ = true;
    std::vector<std::uint32_t> first, lowers, both;
    for (std::uint32_t i = 0; i < f_.switches.size() && one_block_; ++i) {
        if (f_.switches[i].level != level) continue;
        lowers.clear();
        for (const auto p : g_.peers[i])
            if (f_.switches[p].level == level - 1) lowers.push_back(p);
        if (first.empty()) first = lowers;
        both.clear();
        std::set_intersection(lowers.begin(), lowers.end(), first.begin(), first.end(),
                              std::back_inserter(both));
        one_block_ = !both.empty();
    }
    return one_block_;
}

}  // namespace banyan::topo::build
