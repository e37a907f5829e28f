// SPDX-License-Identifier: BSD-3-Clause
//
// How a job goes on with fewer data parallel groups than it asked for (--train-min-dp): with whole ones, each
// on nodes of its own, the first slots of the shape that was submitted. Knows no Slurm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"

namespace banyan::train {

/// The nodes of `min_dp` of the groups that `full` has. An error when the groups are not the outermost of the
/// shape, or do not fill nodes evenly.
result<std::uint32_t> nodes_of_groups(const topo::request& full, std::uint32_t min_dp);

/// `full` on `nodes` nodes: as it is where they suffice, else with as many groups as they hold. Nothing when
/// that takes fewer than `min_nodes`; 0 = all are needed.
std::optional<topo::request> request_on(const topo::request& full, std::uint32_t min_nodes,
                                        std::uint32_t nodes);

/// The ranks of one group: those that are as many apart hold the same, whatever the number of groups.
inline std::uint32_t ranks_of_group(const topo::shape& dims) {
    return dims.ranks() / dims.size(topo::dimension::dp);
}

/// Which node has which slot of the first `step.size()`: every node stays where it is in `planned`, if that
/// slot is there, and the others fill the gaps.
std::vector<std::string> keep_nodes(const std::vector<std::string>& planned,
                                    const std::vector<std::string>& step);

}  // namespace banyan::train
