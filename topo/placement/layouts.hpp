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

/// The seating that costs least of those that fill pools to the last host, or to the last whole ring or
/// pipeline: pipelines side by side, or stages side by side. Looks at about `budget` edges. `pools` and
/// `graph` must outlive it. Only pools on `island` are used, or any for none; null where they do not suffice.
std::optional<seating> cheapest_layout(const distances& far, const slot_graph& graph,
                                       const std::vector<pool>& pools, const request& r,
                                       const job_layout& layout, std::uint32_t island, std::int64_t budget);

}  // namespace banyan::topo
