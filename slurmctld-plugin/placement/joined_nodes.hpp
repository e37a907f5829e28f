// SPDX-License-Identifier: GPL-2.0-or-later
//
// Two fabrics in one cluster: a job of more nodes than one runs in one of them.
#pragma once

#include <vector>

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/fabric/fabric_cache.hpp"

namespace banyan::slurm {

/// The candidates by what joins them (topo::reach_of_hosts), the most first; nodes that the fabric lacks are
/// a part of their own. One part with all of them where the fabric is in one piece.
std::vector<bitmap> joined_nodes(const fabric_cache::view& fabric, const bitstr_t* candidates);

}  // namespace banyan::slurm
