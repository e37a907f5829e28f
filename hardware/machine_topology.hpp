// SPDX-License-Identifier: BSD-3-Clause
//
// libhwloc's view of the machine.
#pragma once

#include <memory>

#include "common/result.hpp"

struct hwloc_topology;

namespace banyan::hardware {

struct destroy_topology {
    void operator()(hwloc_topology* t) const;
};
using owned_topology = std::unique_ptr<hwloc_topology, destroy_topology>;

/// Nothing is loaded into it yet: all that is there, whatever cgroup we run in; devices, and the bridges
/// above them. No library of a GPU is started.
result<owned_topology> fresh_topology();
/// Of the machine that we run on.
result<owned_topology> machine_topology();

}  // namespace banyan::hardware
