// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/meeting.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace banyan::topo {

meeting_points::meeting_points(const fabric& f, std::span<const std::uint32_t> nodes) : at_(nodes.size()) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> cores;
    std::vector<std::uint32_t> core_of_group(f.leaf_groups.size(), none);
    groups_ = static_cast<std::uint32_t>(f.leaf_groups.size());
    for (std::size_t slot = 0; slot < nodes.size(); ++slot) {
        const auto g = nodes[slot] < f.hosts.size() ? f.hosts[nodes[slot]].leaf_group : none;
        if (g == none) continue;
        const auto& group = f.leaf_groups[g];
        if (core_of_group[g] == none)
            core_of_group[g] =
                cores.try_emplace({group.spine_group, group.island}, static_cast<std::uint32_t>(cores.size()))
                    .first->second;
        at_[slot] = {g, group.spine_group, group.island, core_of_group[g]};
        spines_ = std::max(spines_, group.spine_group + 1);
        islands_ = std::max(islands_, group.island + 1);
    }
    cores_ = static_cast<std::uint32_t>(cores.size());
}

tier meeting_points::between(std::uint32_t a, std::uint32_t b) const {
    const auto &p = at_[a], &q = at_[b];
    if (a == b) return tier::host;
    if (p.group == none || q.group == none) return tier::wan;
    if (p.group == q.group) return tier::leaf;
    if (p.spine == q.spine) return tier::spine;
    return p.island == q.island ? tier::core : tier::wan;
}

gathering::gathering(const meeting_points& at)
    : at_(at),
      in_slot_(at.slots()),
      in_group_(at.groups_),
      in_spine_(at.spines_),
      in_island_(at.islands_),
      in_core_(at.cores_) {}

void gathering::add(std::uint32_t slot, std::uint64_t members) {
    if (in_slot_[slot] == 0) slots_.push_back(slot);
    in_slot_[slot] += members;
    all_ += members;
    const auto& p = at_.at_[slot];
    if (p.group == none) return;
    in_group_[p.group] += members;
    in_spine_[p.spine] += members;
    in_island_[p.island] += members;
    in_core_[p.core] += members;
}

std::array<std::uint64_t, tier_count> gathering::pairs() const {
    std::array<std::uint64_t, tier_count> out{};
    for (const auto slot : slots_) {
        const auto& p = at_.at_[slot];
        const auto mine = in_slot_[slot];
        const bool placed = p.group != none;
        const auto leaf = placed ? in_group_[p.group] - mine : 0;
        const auto spine = placed ? in_spine_[p.spine] - in_group_[p.group] : 0;
        const auto core = placed ? in_island_[p.island] - in_core_[p.core] : 0;
        out[0] += mine * (mine - 1);
        out[1] += mine * leaf;
        out[2] += mine * spine;
        out[3] += mine * core;
        out[4] += mine * (all_ - mine - leaf - spine - core);
    }
    return out;
}

std::uint64_t gathering::above_leaf(std::uint32_t slot) const {
    const auto& p = at_.at_[slot];
    return all_ - (p.group == none ? in_slot_[slot] : in_group_[p.group]);
}

void gathering::clear() {
    for (const auto slot : slots_) {
        const auto& p = at_.at_[slot];
        in_slot_[slot] = 0;
        if (p.group == none) continue;
        in_group_[p.group] = in_spine_[p.spine] = in_island_[p.island] = in_core_[p.core] = 0;
    }
    slots_.clear();
    all_ = 0;
}

}  // namespace banyan::topo
