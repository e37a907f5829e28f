// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of a job on nodes of which no fabric tells how near they are to each other, as without InfiniBand.
// Spares, checkpoints, swaps and requeues need no more. Knows no Slurm, and asks nobody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::train {

/// What such a plan says of itself in words for people (plan::spread).
constexpr const char* spread_in_order = "order=slurm";

/// The slots are on the first of `nodes`, in their order, and the others are spares; the copy of a slot is on
/// the node of the next one. A node that has a slot in `before` keeps it, if that is a plan for as many.
/// What does not follow from the nodes (job, run, addresses) is for the caller to add.
result<plan> plan_in_order(const topo::request& request, const std::vector<std::string>& nodes,
                           const plan* before = nullptr);

/// Its buddies: the slot after each of so many.
std::vector<std::uint32_t> next_slots(std::uint32_t slots);

}  // namespace banyan::train
