// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/locations.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace banyan::topo {

slot_locations::slot_locations(const fabric& f, std::span<const std::uint32_t> nodes) {
    at_.reserve(nodes.size());
    for (const auto host : nodes) at_.push_back(location_of(f, host));
}

pair_histogram::pair_histogram(const slot_locations& at)
    : at_(at), in_slot_(at.slots()), core_of_slot_(at.slots(), none) {
    std::uint32_t groups = 0, spines = 0, islands = 0, domains = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> cores;
    std::vector<std::uint32_t> core_of_group;
    for (std::uint32_t slot = 0; slot < at.slots(); ++slot) {
        const auto& p = at[slot];
        if (!p.known()) continue;
        groups = std::max(groups, p.leaf_group + 1);
        spines = std::max(spines, p.spine_group + 1);
        islands = std::max(islands, p.island + 1);
        if (p.nvlink != none) domains = std::max(domains, p.nvlink + 1);
        core_of_group.resize(groups, none);
        auto& core = core_of_group[p.leaf_group];
        if (core == none)
            core = cores.try_emplace({p.spine_group, p.island}, static_cast<std::uint32_t>(cores.size()))
                       .first->second;
        core_of_slot_[slot] = core;
    }
    in_nvlink_.resize(domains);
    in_group_.resize(groups);
    in_spine_.resize(spines);
    in_island_.resize(islands);
    in_core_.resize(cores.size());
}

void pair_histogram::add(std::uint32_t slot, std::uint64_t members) {
    if (in_slot_[slot] == 0) slots_.push_back(slot);
    in_slot_[slot] += members;
    all_ += members;
    const auto& p = at_[slot];
    if (!p.known()) return;
    if (p.nvlink != none) in_nvlink_[p.nvlink] += members;
    in_group_[p.leaf_group] += members;
    in_spine_[p.spine_group] += members;
    in_island_[p.island] += members;
    in_core_[core_of_slot_[slot]] += members;
}

by_tier<std::uint64_t> pair_histogram::pairs() const {
    by_tier<std::uint64_t> out{};
    for (const auto slot : slots_) {
        const auto& p = at_[slot];
        const auto mine = in_slot_[slot];
        const auto nvlink = p.nvlink != none ? in_nvlink_[p.nvlink] - mine : 0;
        const auto leaf = p.known() ? in_group_[p.leaf_group] - mine - nvlink : 0;
        const auto spine = p.known() ? in_spine_[p.spine_group] - in_group_[p.leaf_group] : 0;
        const auto core = p.known() ? in_island_[p.island] - in_core_[core_of_slot_[slot]] : 0;
        out[tier::host] += mine * (mine - 1);
        out[tier::nvlink] += mine * nvlink;
        out[tier::leaf] += mine * leaf;
        out[tier::spine] += mine * spine;
        out[tier::core] += mine * core;
        out[tier::wan] += mine * (all_ - mine - nvlink - leaf - spine - core);
    }
    return out;
}

std::uint64_t pair_histogram::above_leaf(std::uint32_t slot) const {
    const auto& p = at_[slot];
    return all_ - (p.known() ? in_group_[p.leaf_group] : in_slot_[slot]);
}

void pair_histogram::clear() {
    for (const auto slot : slots_) {
        const auto& p = at_[slot];
        in_slot_[slot] = 0;
        if (!p.known()) continue;
        if (p.nvlink != none) in_nvlink_[p.nvlink] = 0;
        in_group_[p.leaf_group] = in_spine_[p.spine_group] = in_island_[p.island] = 0;
        in_core_[core_of_slot_[slot]] = 0;
    }
    slots_.clear();
    all_ = 0;
}

}  // namespace banyan::topo
