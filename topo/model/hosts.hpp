// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts while they are being found: what names say first, then what the evidence says about the rest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topo/model/build.hpp"
#include "topo/model/grouping.hpp"

namespace banyan::topo::build {

struct host_list {
    std::vector<std::string_view> names;      ///< ascending
    hcas_of_hosts hcas;                       ///< with names
    std::vector<std::uint32_t> unattributed;  ///< HCAs whose name tells no host, or a wrong one
};

/// Gives unattributed HCAs to the host with whose HCAs they share a system image.
void attribute_by_system(state& s, host_list& hosts);

/// Takes away the HCA that claims a device which its host has already, where its cable shows which of the two
/// is the stranger.
void settle_doubled_names(state& s, host_list& hosts, const grouping& groups);

/// Gives unattributed HCAs to the host that sits at the same port of the other leaves of their group.
void attribute_by_port(state& s, host_list& hosts, const grouping& groups);

}  // namespace banyan::topo::build
