// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>

#include "topo/model/build.hpp"
#include "topo/model/group_ids.hpp"
#include "topo/model/grouping.hpp"
#include "topo/model/union_find.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

void make_groups(fabric& f, const grouping& g) {
    f.leaf_groups.resize(g.count);
    for (std::uint32_t i = 0; i < g.count; ++i) {
        f.leaf_groups[i].alignment = g.alignment[i];
    }
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h) {
        f.hosts[h].leaf_group = g.group_of_host[h];
        if (g.group_of_host[h] != none) f.leaf_groups[g.group_of_host[h]].hosts.push_back(h);
    }
    // The other planes of a box have no HCA of their own: a leaf is a box.
    for (std::uint32_t sw = 0; sw < f.switches.size(); ++sw)
        if (g.group_of_leaf[sw] != none) f.leaf_groups[g.group_of_leaf[sw]].leaves.push_back(sw);
}

/// Rails go by the device number that most HCAs on a leaf have; where the names give none, by their position
/// in the host.
class rail_order {
  public:
    rail_order(const state& s, const leaf_group& group) {
        for (const auto h : group.hosts)
            for (std::size_t at = 0; at < s.out.hosts[h].hcas.size(); ++at) {
                const auto i = s.out.hosts[h].hcas[at];
                auto& e = leaves_[s.out.hcas[i].leaf];
                if (s.device_of_hca[i] != none) e.devices.push_back(s.device_of_hca[i]);
                e.positions.push_back(at);
            }
    }
    std::uint32_t device(std::uint32_t leaf) const { return key(leaf).first; }
    std::pair<std::uint32_t, std::size_t> key(std::uint32_t leaf) const {
        const auto at = leaves_.find(leaf);
        if (at == leaves_.end()) return {none, SIZE_MAX};
        const auto& e = at->second;
        return {e.devices.empty() ? none : usual(e.devices).value, usual(e.positions).value};
    }

  private:
    struct evidence {
        std::vector<std::uint32_t> devices;
        std::vector<std::size_t> positions;
    };
    std::map<std::uint32_t, evidence> leaves_;
};

void order_rails(const state& s, leaf_group& group) {
    const rail_order order(s, group);
    std::map<std::uint32_t, std::pair<std::uint32_t, std::size_t>> key;
    for (const auto leaf : group.leaves) key[leaf] = order.key(leaf);
    std::stable_sort(group.leaves.begin(), group.leaves.end(),
                     [&](auto a, auto b) { return key[a] < key[b]; });
}

/// A group that lacks a leaf keeps the rails of the others: they are what the groups that lack none have for
/// the same devices. Where the devices do not tell, rails are counted.
void agree_on_rails(const state& s, fabric& f) {
    std::vector<std::vector<std::uint32_t>> devices(f.leaf_groups.size());
    std::map<std::vector<std::uint32_t>, std::size_t> whole;  // ordered devices -> groups
    std::size_t most = 0;
    for (std::size_t g = 0; g < f.leaf_groups.size(); ++g) {
        auto& group = f.leaf_groups[g];
        const rail_order order(s, group);
        for (std::size_t i = 0; i < group.leaves.size(); ++i) {
            devices[g].push_back(order.device(group.leaves[i]));
            group.rails.push_back(static_cast<std::uint16_t>(i));
        }
        ++whole[devices[g]];
        most = std::max(most, devices[g].size());
    }
    for (std::size_t g = 0; g < f.leaf_groups.size(); ++g) {
        const auto& mine = devices[g];
        if (mine.size() == most || std::find(mine.begin(), mine.end(), none) != mine.end()) continue;
        const std::vector<std::uint32_t>* like = nullptr;
        std::size_t groups = whole[mine];
        for (const auto& [theirs, count] : whole)
            if (theirs.size() > mine.size() && count >= groups &&
                std::includes(theirs.begin(), theirs.end(), mine.begin(), mine.end()))
                like = &theirs, groups = count;
        for (std::size_t i = 0; like && i < mine.size(); ++i)
            f.leaf_groups[g].rails[i] =
                static_cast<std::uint16_t>(std::find(like->begin(), like->end(), mine[i]) - like->begin());
    }
}

/// An HCA is on the rail of its leaf, also where that serves another group; a host lists its HCAs by rail.
void number_rails(fabric& f) {
    std::vector<std::uint16_t> rail_of_leaf(f.switches.size());
    for (const auto& g : f.leaf_groups)
        for (std::size_t rail = 0; rail < g.leaves.size(); ++rail)
            rail_of_leaf[g.leaves[rail]] = static_cast<std::uint16_t>(rail_at(g, rail));
    for (auto& h : f.hcas)
        if (h.leaf != none) h.rail = rail_of_leaf[h.leaf];
    for (auto& h : f.hosts)
        std::stable_sort(h.hcas.begin(), h.hcas.end(),
                         [&](auto a, auto b) { return f.hcas[a].rail < f.hcas[b].rail; });
}

void rate_hosts(fabric& f, const grouping& g) {
    for (auto& h : f.hosts) {
        h.rails = static_cast<std::uint16_t>(
            std::count_if(h.hcas.begin(), h.hcas.end(), [&](auto i) { return f.hcas[i].leaf != none; }));
        const auto there = std::count_if(h.hcas.begin(), h.hcas.end(), [&](auto i) {
            return f.hcas[i].leaf != none && g.group_of_leaf[f.hcas[i].leaf] == h.leaf_group;
        });
        h.confidence = h.leaf_group == none || h.hcas.empty()
                           ? 0
                           : static_cast<double>(there) / static_cast<double>(h.hcas.size());
    }
}

/// Numbers 0.. by the first group of each set.
std::vector<std::uint32_t> number(union_find& sets) {
    std::map<std::uint32_t, std::uint32_t> seen;
    auto out = sets.smallest();
    for (auto& set : out) set = seen.try_emplace(set, static_cast<std::uint32_t>(seen.size())).first->second;
    return out;
}

/// Groups that reach the same switch above their leaves have the same spine group; those that any link
/// connects are on one island.
void number_tiers(fabric& f, const grouping& g) {
    const auto group_of = [&](std::uint32_t sw) { return g.group_of_leaf[f.switches[sw].box]; };
    union_find spines(f.leaf_groups.size()), islands(f.switches.size());
    std::vector<std::uint32_t> first_group(f.switches.size(), none);
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        islands.join(l.a.index, l.b.index);
        for (const auto& [low, high] : {std::pair(l.a.index, l.b.index), std::pair(l.b.index, l.a.index)}) {
            if (group_of(low) == none || f.switches[low].level != 0 || f.switches[high].level != 1) continue;
            if (first_group[high] == none)
                first_group[high] = group_of(low);
            else
                spines.join(first_group[high], group_of(low));
        }
    }
    // Hosts on a spine are as near as those under it.
    for (std::uint32_t sw = 0; sw < f.switches.size(); ++sw)
        if (f.switches[sw].level == 1 && group_of(sw) != none && first_group[sw] != none)
            spines.join(first_group[sw], group_of(sw));
    const auto spine_group = number(spines);
    std::map<std::uint32_t, std::uint32_t> island_of_root;
    // The leaves of a group are one island by their hosts, even where each rail has spines of its own.
    for (const auto& group : f.leaf_groups)
        for (const auto leaf : group.leaves) islands.join(group.leaves[0], leaf);
    const auto island_of = islands.smallest();
    for (std::uint32_t i = 0; i < f.leaf_groups.size(); ++i) {
        auto& group = f.leaf_groups[i];
        group.spine_group = spine_group[i];
        const auto root = group.leaves.empty() ? none : island_of[group.leaves[0]];
        group.island =
            island_of_root.try_emplace(root, static_cast<std::uint32_t>(island_of_root.size())).first->second;
    }
}

}  // namespace

void group_leaves(state& s) {
    auto& f = s.out;
    hcas_of_hosts hosts;
    hosts.reserve(f.hosts.size());
    for (const auto& h : f.hosts) hosts.push_back(h.hcas);
    const auto g = group_hosts(f, hosts, unattributed_hcas(f));
    make_groups(f, g);
    rate_hosts(f, g);
    for (auto& group : f.leaf_groups) order_rails(s, group);
    agree_on_rails(s, f);
    number_rails(f);
    number_tiers(f, g);
    if (s.options.previous)
        keep_group_ids(f, *s.options.previous);
    else
        number_groups(f);
}

}  // namespace banyan::topo::build
