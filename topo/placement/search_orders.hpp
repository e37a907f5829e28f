// SPDX-License-Identifier: BSD-3-Clause
//
// Local search over bin orders.
#pragma once

#include <span>

#include "topo/placement/bin_order.hpp"
#include "topo/placement/communication_graph.hpp"

namespace banyan::topo {

/// Swaps and shifts the parts of `o` and changes their quotas (all that a part has, or whole ones of `items`,
/// a size in slots each) as long as that lowers its objective, which it must have: first improvement, down to
/// a local minimum. Looks at `budget` edges at most, which it lowers by those that it looked at, and at as
/// many parts as `limit` allows.
void search_orders(const bin_distances& distance, const communication_graph& graph,
                   std::span<const std::uint32_t> items, bin_order& o, std::int64_t& budget, work& limit);

}  // namespace banyan::topo
