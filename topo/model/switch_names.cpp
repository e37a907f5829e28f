// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>

#include <banyan/topo/switch_names.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo {
namespace {

constexpr std::size_t room = 48;  ///< bytes of a list of neighbours

std::string shortened(std::string text) {
    if (text.size() <= room) return text;
    return text.substr(0, room - 3) + "...";
}

std::string hosts_of(const fabric& f, const leaf_group& g) {
    std::vector<std::string> names;
    for (const auto h : g.hosts) names.push_back(f.hosts[h].name);
    return shortened(compress_hostlist(names));
}

}  // namespace

switch_names::switch_names(const fabric& f) : made_up_(f.switches.size()) {
    boost::unordered_flat_map<std::string_view, std::uint32_t> own, made;
    for (const auto& s : f.switches) ++own[s.name];
    const auto needs = [&](const switch_node& s) {
        return s.name.empty() || is_factory_switch(s.name) || own[s.name] > 1;
    };
    for (std::uint32_t i = 0; i < f.switches.size(); ++i)
        if (needs(f.switches[i])) made_up_[i] = fmt::format("switch-{:06x}", f.switches[i].id & 0xffffff);
    for (const auto& name : made_up_)
        if (!name.empty()) ++made[name];
    std::vector<std::uint32_t> alike;
    for (std::uint32_t i = 0; i < made_up_.size(); ++i)
        if (nameless(i) && (made[made_up_[i]] > 1 || own.contains(made_up_[i]))) alike.push_back(i);
    for (const auto i : alike) made_up_[i] = fmt::format("switch-{:016x}", f.switches[i].id);
}

std::string switch_names::label(const fabric& f, std::uint32_t sw) const {
    return nameless(sw) ? fmt::format("{} (0x{:016x})", made_up_[sw], f.switches[sw].id)
                        : f.switches[sw].name;
}

switch_places::switch_places(const fabric& f, const switch_names& names)
    : f_(f), names_(names), group_of_leaf_(f.switches.size(), none), peers_(f.switches.size()) {
    for (std::uint32_t g = 0; g < f.leaf_groups.size(); ++g)
        for (const auto leaf : f.leaf_groups[g].leaves) group_of_leaf_[leaf] = g;
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        peers_[l.a.index].push_back(l.b.index);
        peers_[l.b.index].push_back(l.a.index);
    }
}

/// Its neighbours one level below or above that have names.
std::string switch_places::named(std::uint32_t sw, bool below) const {
    std::set<std::string> found;
    for (const auto p : peers_[sw]) {
        const auto level = f_.switches[p].level, own = f_.switches[sw].level;
        if (!names_.nameless(p) && (below ? level < own : level > own))
            found.insert(short_switch_name(f_.switches[p].name));
    }
    return shortened(compress_hostlist({found.begin(), found.end()}));
}

std::string switch_places::groups_below(std::uint32_t sw) const {
    std::set<std::uint32_t> seen{sw}, groups;
    std::vector<std::uint32_t> queue{sw};
    for (std::size_t at = 0; at < queue.size(); ++at)
        for (const auto p : peers_[queue[at]]) {
            if (f_.switches[p].level >= f_.switches[queue[at]].level || !seen.insert(p).second) continue;
            queue.push_back(p);
            if (const auto g = group_of_leaf_[f_.switches[p].box]; g != none) groups.insert(g);
        }
    std::vector<std::string> ids;
    for (const auto g : groups) ids.push_back(f_.leaf_groups[g].id);
    std::sort(ids.begin(), ids.end(), before_by_number);
    return shortened(compress_hostlist(ids));
}

std::string switch_places::of_leaf(std::uint32_t sw) const {
    const auto box = f_.switches[sw].box;
    if (const auto group = group_of_leaf_[box]; group != none) {
        const auto& g = f_.leaf_groups[group];
        const auto at =
            static_cast<std::size_t>(std::find(g.leaves.begin(), g.leaves.end(), box) - g.leaves.begin());
        return fmt::format("leaf of {} ({}), rail {}", hosts_of(f_, g), g.id, rail_at(g, at));
    }
    if (peers_[sw].empty()) return "leaf without hosts and without a link up";
    const auto up = named(sw, false);
    return up.empty() ? "leaf without hosts" : "leaf without hosts, below " + up;
}

std::string switch_places::of(std::uint32_t sw) const {
    const auto level = f_.switches[sw].level;
    if (level == UINT8_MAX) return "no way leads from it to a host";
    if (level == 0) return of_leaf(sw);
    const auto lowers = named(sw, true);
    return fmt::format("{} above {}", level == 1 ? "spine" : "core",
                       lowers.empty() ? groups_below(sw) : lowers);
}

}  // namespace banyan::topo
