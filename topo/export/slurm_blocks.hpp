// SPDX-License-Identifier: BSD-3-Clause
//
// BlockSizes of topology/block: the base size, and larger ones of 2, 4, 8, ... times that.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/export/slurm.hpp"

namespace banyan::topo {

/// Sets topology.block_sizes to `wanted`, or where that is empty to what the blocks suggest, with notes where
/// Slurm would take some of the blocks otherwise. An error where Slurm refuses the sizes.
result<void> choose_block_sizes(slurm_topology& topology, const std::vector<std::uint32_t>& wanted);

}  // namespace banyan::topo
