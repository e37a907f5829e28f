// SPDX-License-Identifier: BSD-3-Clause
//
// Construction for a job that may do better with some of its units cut: slots in one order into bins in
// another, and the search for the orders with the least objective.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topo/placement/communication_graph.hpp"
#include "topo/placement/order_problem.hpp"

namespace banyan::topo {

/// Slot -> bin, with the least objective of those that fill bins, spine groups or islands to the last whole
/// item, or bins to the last host, in each of the sequences; and of what search_orders makes of the best of
/// them. Never worse than the nodes that Slurm itself would take, in any of the sequences. Looks at about
/// `budget` edges. Only bins on `island` are used, or any for none; null where they do not suffice.
std::optional<std::vector<std::uint32_t>> construct_by_orders(
    const bin_distances& distance, const communication_graph& graph, const std::vector<bin>& bins,
    const order_problem& asked, std::uint32_t island, std::int64_t budget, work& limit);

}  // namespace banyan::topo
