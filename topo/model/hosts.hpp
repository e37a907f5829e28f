// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts while they are being found: what names say first, then what the evidence says about the rest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topo/model/build.hpp"
#include "topo/model/grouping.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::build {

struct host_list {
    std::vector<std::string_view> names;      ///< ascending
    hcas_of_hosts hcas;                       ///< with names
    std::vector<std::uint32_t> unattributed;  ///< HCAs whose name tells no host, or a wrong one
};

/// Gives the HCA to the host, and tells it where its own name does not say so.
void give(state& s, host_list& hosts, std::uint32_t hca, std::uint32_t host, const std::string& because,
          double confidence);

/// Gives unattributed HCAs to the host with whose HCAs they share a system image.
void attribute_by_system(state& s, host_list& hosts);

/// Leaves an HCA out of placement.
void exclude(state& s, std::uint32_t hca, std::string_view kind, std::string why);

/// Leaves out the hosts that do not compute.
void set_services_aside(state& s, host_list& hosts);

/// Gives every HCA the number that its name tells: one that is the same in no two namings.
void number_devices(state& s);

/// Gives hosts that number their HCAs otherwise the numbers that most have.
void agree_on_numbers(state& s, const host_list& hosts);

/// Leaves out the HCAs that lead to storage, and the hosts that have no others, where the site file does not
/// name the devices that do.
void set_storage_rails_aside(state& s, host_list& hosts);

/// Takes away the HCA that claims a device which its host has already, where its cable shows which of the two
/// is the stranger.
void settle_doubled_names(state& s, host_list& hosts, const grouping& groups);

/// Gives unattributed HCAs to the host that sits at the same port of the other leaves of their group.
void attribute_by_port(state& s, host_list& hosts, const grouping& groups);

/// Gives unattributed HCAs, with the number that they should have, to the host whose GUIDs theirs completes:
/// before attribute_by_port, since a crossed cable sits where another host's should.
void attribute_by_step(state& s, host_list& hosts, const grouping& groups);
/// And, after all others, to the host between whose GUIDs theirs lie, if another's sits in its place; those
/// that the host has already get their number from that.
void attribute_by_neighbours(state& s, host_list& hosts, const grouping& groups);

}  // namespace banyan::topo::build
