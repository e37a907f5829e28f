// SPDX-License-Identifier: BSD-3-Clause
//
// Items of so many hosts each (units, bundles, rings, pipelines) into bins, whole.
#pragma once

#include <cstddef>
#include <vector>

#include "topo/placement/bins.hpp"

namespace banyan::topo {

/// Leaf groups, one for each of `spine_groups`, and spine groups that a ring over all of them goes through: a
/// ring of data parallel peers goes over a spine once for each leaf group and over the core once for each
/// spine group, where there is more than one.
std::size_t crossings(std::vector<std::uint32_t> spine_groups);

/// Decides how many items of `size` hosts each bin holds, at most `count` in all: the fewest spine groups and
/// leaf groups, evenly, and then the tightest fit, so that large bins stay free. Returns how many items fit
/// nowhere whole. `spares` hosts beside the items are welcome, not required.
/// Cost: O(bins x spine groups), of these 128 and then ever fewer.
std::uint32_t pack(std::vector<bin>& bins, std::uint32_t count, std::uint32_t size, std::uint32_t spares);

}  // namespace banyan::topo
