// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes by units: bundles whole where they fit, else units whole, in the pools that share_out chose; what
// fits nowhere whole straddles as few leaf groups as possible.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/placement/layout.hpp"
#include "topo/placement/pools.hpp"

namespace banyan::topo {

/// Where the slots of a job go.
struct seats {
    free_pools free;
    std::vector<std::uint32_t> pool_of_slot;  ///< index into free.pools
    std::uint32_t broken = 0;                 ///< units that straddle
};

/// `from.free` suffices for the job. Cost: O(hosts + pools x spine groups), and of `limit` pools x broken
/// units: without any left those are cut as the pools come.
seats keep_units_whole(const fabric& f, const candidates& from, const request& r, const job_layout& layout,
                       work& limit);

}  // namespace banyan::topo
