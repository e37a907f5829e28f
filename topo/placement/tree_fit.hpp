// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "topo/placement/order.hpp"
#include "topo/placement/pools.hpp"

namespace banyan::topo {

/// Sets how many of the `wanted` hosts each part gives as Slurm's topology/tree takes them: leaf after leaf
/// the one that suits what is still wanted, among those nearest to the leaves chosen so far. It suits when it
/// holds all, the tighter the better; else when its spine group does; else when it holds most. When `limit`
/// has nothing left, as they come.
void fit_like_tree(const std::vector<pool>& pools, std::size_t wanted, order& o, work& limit);

}  // namespace banyan::topo
