// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "topo/model/divisions.hpp"
#include "topo/model/hosts.hpp"

namespace banyan::topo::build {

/// Hosts that have the same devices, and for each of those the leaves it leads to.
struct host_make {
    std::vector<std::uint32_t> hosts, devices;
    std::vector<leaf_by_host> leaves;  ///< by device, then by host; none without a link
};

/// The makes of at least three hosts with at least two devices.
std::vector<host_make> makes_of(const state& s, const host_list& hosts);

}  // namespace banyan::topo::build
