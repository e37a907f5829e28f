// SPDX-License-Identifier: BSD-3-Clause
//
// Construction by packing: bundles whole where they fit, else units whole, in the bins that pack chose; what
// fits nowhere whole straddles as few leaf groups as possible.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/placement/bins.hpp"
#include "topo/placement/job_slots.hpp"

namespace banyan::topo {

/// Where the slots of a job go.
struct assignment {
    free_bins free;
    std::vector<std::uint32_t> bin_of_slot;  ///< index into free.bins
    std::uint32_t broken = 0;                ///< units that straddle
    double objective = 0;                    ///< of what lower_objective returned
};

/// `from.free` suffices for the job. Cost: O(hosts + bins x spine groups), and of `limit` bins x broken
/// units: without any left those are cut as the bins come.
assignment construct_whole_units(const fabric& f, const candidates& from, const request& r,
                                 const job_slots& job, work& limit);

}  // namespace banyan::topo
