// SPDX-License-Identifier: BSD-3-Clause
//
// How many nodes and tasks follow from --train-parallel and --train-spares. One place for the submit filter,
// the select plugin and srun, so that all three count alike. Knows no Slurm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "train/options.hpp"

namespace banyan::train {

/// What else a job says about its size; 0 = it does not say. All of it is a user's.
struct stated_numbers {
    std::uint32_t min_nodes = 0;  ///< spares included
    std::uint32_t max_nodes = 0;
    std::uint32_t tasks = 0;  ///< the ranks, or the tasks of all nodes where tasks_per_node says so too
    std::uint32_t tasks_per_node = 0;
    std::uint32_t gpus_per_node = 0;  ///< one rank each, where nothing else tells the number of nodes
};

/// The request of a job; empty for one without --train-parallel. An error names the line to type.
result<std::optional<topo::request>> request_from(const options& asked, const stated_numbers& stated);

/// Nodes of the allocation, spares included.
inline std::uint32_t all_nodes(const topo::request& r) { return r.nodes + r.spares; }

/// GPUs of a node in "gres:gpu:a100:8,gres:nic:1", "gpu:8", "a100:4,v100:4" (of --gpus-per-node) and the
/// like; 0 when there are none, or the text is not understood.
std::uint32_t gpus_in(std::string_view gres, bool all_are_gpus = false);

/// With --ntasks-per-gpu Slurm makes as many tasks as the GPUs say, whatever else is given: whether `gpus` of
/// a node with `each` tasks are those of `asked`.
result<void> check_tasks_of_gpus(const topo::request& asked, std::uint32_t gpus, std::uint32_t each);

/// A number of GPUs in all, such as "gres:gpu:a100:16", "a100:16" or "16", as that of each of `nodes`. An
/// error when it does not divide; nothing for several kinds at once, which stay as they are.
result<std::optional<std::string>> gpus_of_each(std::string_view in_all, std::uint32_t nodes);

}  // namespace banyan::train
