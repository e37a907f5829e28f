// SPDX-License-Identifier: BSD-3-Clause
//
// One task a node that starts the node's ranks itself, as torchrun does: --train-parallel counts ranks, the
// job's tasks are launchers. No Slurm header here.
#pragma once

#include <cstdint>

#include <banyan/topo/shape.hpp>

namespace banyan::train {

/// Whether a job of `nodes` nodes, spares not counted, starts launchers: what it says of its tasks is one a
/// node, and the shape has several ranks for each. 0 = not said. A job that says nothing starts ranks.
inline bool asks_for_launchers(const topo::shape& shape, std::uint32_t nodes, std::uint32_t tasks,
                               std::uint32_t tasks_per_node) {
    const auto ranks = shape.ranks();
    return nodes > 0 && ranks > nodes && ranks % nodes == 0 &&
           (tasks_per_node == 1 || (tasks_per_node == 0 && tasks == nodes));
}

}  // namespace banyan::train
