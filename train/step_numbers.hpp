// SPDX-License-Identifier: BSD-3-Clause
//
// Which step of a training job is the training, and what srun has to ask for so that its ranks land where the
// plan has them. Knows no Slurm.
//
// A step is the training when its srun says so (--train, as banyan-run does, or a --train-parallel of its
// own), or says neither how large the step is nor where it runs. Any other step is a helper, and so is every
// one with --overlap. What the training does not say follows from the plan, the nodes too: no spare that is
// not needed. What it says has to fit the plan, or srun refuses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"
#include "train/options.hpp"

namespace banyan::train {

/// What stood on this srun's command line; 0 or empty = nothing.
struct step_words {
    std::uint32_t min_nodes = 0, max_nodes = 0;  ///< -N; both, or neither
    std::uint32_t tasks = 0;
    std::uint32_t tasks_per_node = 0;
    std::vector<std::string> nodelist{};  ///< -w
    std::vector<std::string> exclude{};   ///< -x
    bool relative = false;                ///< -r: the user chooses the nodes by their place
    bool training = false;                ///< --train, or its own --train-parallel
};

/// The job that the step is in.
struct step_job {
    topo::request request;
    std::vector<std::string> nodes;    ///< of the allocation as it is now
    std::vector<std::string> spares;   ///< of the plan, the last the first to be left out; empty = unknown
    std::vector<std::string> order{};  ///< slot -> node of the plan; empty = unknown
};

/// What the training step asks for.
struct step_numbers {
    std::uint32_t nodes = 0, tasks = 0;
    /// Exactly these; empty where the user, or Slurm for want of a plan, chooses.
    std::vector<std::string> nodelist;
    /// slot -> node: each keeps its slot of the plan, and others fill the gaps. Empty where nobody knows
    /// which nodes the step gets.
    std::vector<std::string> order;
};

/// Why a step is not the training.
struct helper_step {
    std::string why;
    bool as_large = false;  ///< as the training: its user may have meant that
};
/// Nodes and tasks of a training, without spares.
struct job_size {
    std::uint32_t nodes = 0, tasks = 0;
};
/// What follows from the numbers in a job's environment, which count the spares; 0 = not known.
job_size size_of_training(std::uint32_t all_nodes, std::uint32_t all_tasks, const options& asked);
/// Nothing where the step is the training.
std::optional<helper_step> helper_by_size(const step_words& words, const job_size& job);

/// Why a step of so many tasks is not the training of `dims`.
error other_tasks(const topo::shape& dims, std::uint32_t tasks);

/// The task ids of each slot: its ranks, or its number where the tasks are launchers.
std::vector<std::vector<std::uint32_t>> tasks_of_slots(const topo::request& request, bool launchers);

/// Of each task of the training its node. `order`: as many as the request has nodes.
std::vector<std::string> node_of_each_task(const topo::request& request,
                                           const std::vector<std::string>& order);

/// Of a step that is the training. Refused: what it says does not fit the plan, or too few nodes are left.
result<step_numbers> numbers_of_training(const step_job& job, const step_words& words);

}  // namespace banyan::train
