// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/joined_parts.hpp"

#include <algorithm>
#include <map>

#include <banyan/topo/tier.hpp>

namespace banyan::topo {

bool has_islands(const fabric& f) {
    return std::any_of(f.leaf_groups.begin(), f.leaf_groups.end(),
                       [&](const leaf_group& g) { return g.island != f.leaf_groups.front().island; });
}

std::vector<std::vector<std::uint32_t>> joined_parts(const fabric& f, std::span<const std::uint32_t> free) {
    const auto reach = reach_of_hosts(f);
    std::map<std::uint32_t, std::vector<std::uint32_t>> parts;
    for (const auto h : free)
        if (h < reach.size() && reach[h] != none) parts[reach[h]];
    for (const auto h : free)
        for (auto& [number, hosts] : parts)
            if (h >= reach.size() || reach[h] == none || reach[h] == number) hosts.push_back(h);
    std::vector<std::vector<std::uint32_t>> out;
    for (auto& [number, hosts] : parts) out.push_back(std::move(hosts));
    std::stable_sort(out.begin(), out.end(), [](auto& x, auto& y) { return x.size() < y.size(); });
    return out;
}

}  // namespace banyan::topo
