// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/buddies.hpp"

#include <algorithm>
#include <numeric>

#include "topo/placement/partition.hpp"

namespace banyan::topo {

std::vector<std::uint32_t> choose_buddies(const fabric& f, std::span<const std::uint32_t> nodes) {
    const auto n = nodes.size();
    const auto groups = static_cast<std::uint32_t>(f.leaf_groups.size()) + 1;  // the last: hosts without one
    std::vector<std::uint32_t> group(n), size(groups), by_size(groups), order(n), buddies(n);
    for (std::size_t slot = 0; slot < n; ++slot) {
        const auto g = nodes[slot] < f.hosts.size() ? f.hosts[nodes[slot]].leaf_group : none;
        group[slot] = std::min(g, groups - 1);
        ++size[group[slot]];
    }
    std::iota(by_size.begin(), by_size.end(), 0u);
    std::stable_sort(by_size.begin(), by_size.end(), [&](auto a, auto b) { return size[a] > size[b]; });
    auto place_of = by_size;
    for (std::uint32_t i = 0; i < groups; ++i) place_of[by_size[i]] = i;
    for (auto& g : group) g = place_of[g];
    std::iota(order.begin(), order.end(), 0u);
    order = sorted_by(order, group, groups);
    // With the groups side by side, a rotation by the largest group's size leads out of every group that is
    // at most half of all.
    std::size_t shift = size[by_size.front()];
    if (shift == n) shift = n / 2;
    for (std::size_t i = 0; i < n; ++i) buddies[order[i]] = order[(i + shift) % n];
    return buddies;
}

}  // namespace banyan::topo
