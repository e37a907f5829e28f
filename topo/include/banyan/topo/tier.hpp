// SPDX-License-Identifier: BSD-3-Clause
//
// The tiers of the fabric, and the distance of two hosts: the lowest tier where they meet. Whatever asks how
// far apart two nodes of a job are asks here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <banyan/topo/enum_array.hpp>

namespace banyan::topo {

struct fabric;

constexpr std::uint32_t none = UINT32_MAX;  ///< an index that refers to nothing

/// Where two hosts meet, from the nearest to the farthest: they are one host, or are joined by the leaves of
/// one leaf group, the spines of one spine group, the cores of one island, or a line between islands.
enum class tier : std::uint8_t { host, leaf, spine, core, wan };
inline constexpr std::array all_tiers{tier::host, tier::leaf, tier::spine, tier::core, tier::wan};
inline constexpr std::size_t tier_count = all_tiers.size();
std::string_view name_of(tier t);

template <class Value>
using by_tier = enum_array<tier, Value, tier_count>;

/// The position of a host in the hierarchy. A host that is in no leaf group, or not on the fabric, has none
/// of the three.
struct location {
    std::uint32_t leaf_group = none, spine_group = none, island = none;

    bool known() const { return leaf_group != none; }
};
location location_of(const fabric& f, std::uint32_t host);

/// Of two different hosts. One without a location is at tier wan of everybody.
constexpr tier tier_between(const location& a, const location& b) {
    if (a.leaf_group == b.leaf_group) return a.leaf_group == none ? tier::wan : tier::leaf;
    if (a.spine_group == b.spine_group) return tier::spine;
    return a.island == b.island ? tier::core : tier::wan;
}
/// Of any two, by host index.
tier tier_between(const fabric& f, std::uint32_t a, std::uint32_t b);

/// By host: the same number where links of the fabric, or WAN links of the site file, join two of them; none
/// for a host without a leaf group. No job is placed on hosts with different numbers.
std::vector<std::uint32_t> reach_of_hosts(const fabric& f);

}  // namespace banyan::topo
