// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "topo/placement/bin_order.hpp"
#include "topo/placement/bins.hpp"

namespace banyan::topo {

/// Sets the quotas of `o` as Slurm's topology/tree takes the `wanted` hosts: leaf after leaf the one that
/// suits what is still wanted, among those nearest to the leaves chosen so far. It suits when it holds all,
/// the tighter the better; else when its spine group does; else when it holds most. When `limit` has nothing
/// left, as they come.
void fit_like_tree(const std::vector<bin>& bins, std::size_t wanted, bin_order& o, work& limit);

}  // namespace banyan::topo
