// SPDX-License-Identifier: BSD-3-Clause
//
// Whose the reason of a node is that is out already.
#pragma once

#include <string>

#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

/// slurmctld set it, with DOWN alone, for what ends when the node's slurmd registers: nobody wants it kept.
bool is_slurms_own(const node_status& node);

/// A node that banyan-sweep has drained gets `reason`, so that the sweep does not return it. False: it has
/// not. Blocks.
result<bool> keep_from_sweep(cluster& slurm, const std::string& node, const std::string& reason);

}  // namespace banyan::fault
