// SPDX-License-Identifier: BSD-3-Clause
//
// What is looked for after the packing: an assignment with a lower objective.
#pragma once

#include <banyan/topo/placement.hpp>

#include "topo/placement/construct_units.hpp"
#include "topo/placement/job_slots.hpp"

namespace banyan::topo {

/// The assignment with the least objective of those that are constructed by orders, and what a local search
/// makes of it; `start` where none is lower.
assignment lower_objective(const fabric& f, const request& r, const job_slots& job, assignment start,
                           work& limit);

}  // namespace banyan::topo
