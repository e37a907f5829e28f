// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts that Slurm has switched off are in no dump, and will be where they were.
#pragma once

#include <string>
#include <vector>

#include <banyan/topo/reader.hpp>

namespace banyan::topo {

/// The hosts of `last` of which the dump has no HCA.
std::vector<std::string> hosts_gone(const dump& d, const fabric& last);

/// The dump with those of `hosts` that it lacks, each HCA on the ports that it had in `last`: where the
/// switch is still there and nothing else is on its port. The names of what is added point into `last`, which
/// must outlive the dump.
dump with_last_places(const dump& d, const fabric& last, const std::vector<std::string>& hosts);

}  // namespace banyan::topo
