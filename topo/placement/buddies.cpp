// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/buddies.hpp"

#include <algorithm>
#include <numeric>

namespace banyan::topo {

std::vector<std::uint32_t> choose_buddies(const fabric& f, std::span<const std::uint32_t> nodes) {
    const auto n = nodes.size();
    std::vector<std::uint32_t> group(n), order(n), buddies(n);
    std::vector<std::size_t> size(f.leaf_groups.size() + 1);  // the last: hosts without a group
    for (std::size_t slot = 0; slot < n; ++slot) {
        const auto g = nodes[slot] < f.hosts.size() ? f.hosts[nodes[slot]].leaf_group : none;
        group[slot] = std::min<std::uint32_t>(g, static_cast<std::uint32_t>(f.leaf_groups.size()));
        ++size[group[slot]];
    }
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
        return std::pair(-static_cast<std::int64_t>(size[group[a]]), group[a]) <
               std::pair(-static_cast<std::int64_t>(size[group[b]]), group[b]);
    });
    // With the groups side by side, a rotation by the largest group's size leads out of every group that is
    // at most half of all.
    std::size_t shift = 0;
    for (const auto count : size) shift = std::max(shift, count);
    if (shift == n) shift = n / 2;
    for (std::size_t i = 0; i < n; ++i) buddies[order[i]] = order[(i + shift) % n];
    return buddies;
}

}  // namespace banyan::topo
