// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/tier.hpp>

#include "topo/model/union_find.hpp"

namespace banyan::topo {

std::string_view name_of(tier t) {
    constexpr by_tier<std::string_view> names{"host", "leaf", "spine", "core", "wan"};
    return names[t];
}

location location_of(const fabric& f, std::uint32_t host) {
    const auto group = host < f.hosts.size() ? f.hosts[host].leaf_group : none;
    if (group == none) return {};
    return {group, f.leaf_groups[group].spine_group, f.leaf_groups[group].island};
}

tier tier_between(const fabric& f, std::uint32_t a, std::uint32_t b) {
    return a == b ? tier::host : tier_between(location_of(f, a), location_of(f, b));
}

std::vector<std::uint32_t> reach_of_hosts(const fabric& f) {
    std::uint32_t islands = 0;
    for (const auto& g : f.leaf_groups) islands = std::max(islands, g.island + 1);
    build::union_find lines(islands);
    for (const auto& w : f.wan)
        if (w.a < islands && w.b < islands) lines.join(w.a, w.b);
    const auto joined = lines.smallest();
    std::vector<std::uint32_t> out;
    out.reserve(f.hosts.size());
    for (const auto& h : f.hosts)
        out.push_back(h.leaf_group == none ? none : joined[f.leaf_groups[h.leaf_group].island]);
    return out;
}

}  // namespace banyan::topo
