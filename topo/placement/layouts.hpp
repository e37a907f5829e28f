// SPDX-License-Identifier: BSD-3-Clause
//
// Layouts beside the one that keeps units whole, for a job that may do better with some of them cut: slots in
// one order handed out to pools in another, and the search for the orders that cost least.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/placement/layout.hpp"
#include "topo/placement/pools.hpp"
#include "topo/placement/seating.hpp"

namespace banyan::topo {

/// The seating that costs least of those that fill pools, spine groups or islands to the last whole ring or
/// pipeline, or pools to the last host: pipelines side by side, or stages side by side; and of what climb
/// makes of the best of them. Never dearer than the nodes that Slurm itself would take, in either order.
/// Looks at about `budget` edges. `pools` and `graph` must outlive it. Only pools on `island` are used, or
/// any for none; null where they do not suffice.
std::optional<seating> cheapest_layout(const distances& far, const slot_graph& graph,
                                       const std::vector<pool>& pools, const request& r,
                                       const job_layout& layout, std::uint32_t island, std::int64_t budget,
                                       work& limit);

}  // namespace banyan::topo
