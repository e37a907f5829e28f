// SPDX-License-Identifier: BSD-3-Clause
//
// Construction for a job that may do better with some of its units cut: slots in one order into bins in
// another, and the search for the orders with the least objective.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topo/placement/communication_graph.hpp"

namespace banyan::topo {

/// Slot -> bin, with the least objective of those that fill bins, spine groups or islands to the last whole
/// ring or pipeline, or bins to the last host: pipelines side by side, or stages side by side; and of what
/// search_orders makes of the best of them. Never worse than the nodes that Slurm itself would take, in
/// either order. Looks at about `budget` edges. Only bins on `island` are used, or any for none; null where
/// they do not suffice.
std::optional<std::vector<std::uint32_t>> construct_by_orders(const bin_distances& distance,
                                                              const communication_graph& graph,
                                                              const std::vector<bin>& bins, const request& r,
                                                              const job_slots& job, std::uint32_t island,
                                                              std::int64_t budget, work& limit);

}  // namespace banyan::topo
