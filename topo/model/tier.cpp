// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/fabric.hpp>
#include <banyan/topo/tier.hpp>

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

}  // namespace banyan::topo
