// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "topo/placement/order.hpp"
#include "topo/placement/seating.hpp"

namespace banyan::topo {

/// Swaps, shifts and caps the parts of `o` as long as that lowers its cost, which it must have. Looks at
/// `budget` edges at most, which it lowers by those that it looked at, and at as many parts as `limit`
/// allows.
void climb(const distances& far, const slot_graph& graph, const shape& dims, order& o, std::int64_t& budget,
           work& limit);

}  // namespace banyan::topo
