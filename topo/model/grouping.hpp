// SPDX-License-Identifier: BSD-3-Clause
//
// Which leaves serve the same hosts, and at which port of its leaves each host sits. Done once with the hosts
// that names give, to find out where the others belong, and again with all.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo::build {

/// For each host its HCAs, as indices into fabric::hcas.
using hcas_of_hosts = std::vector<std::vector<std::uint32_t>>;

/// Share of the HCAs of a group that agree on ports, from where on a port tells whose an HCA is.
constexpr double ports_tell = 0.8;

struct grouping {
    std::vector<std::uint32_t> group_of_leaf;  ///< by switch; none where no host is
    std::vector<std::uint32_t> group_of_host;  ///< by host; none without a connected HCA
    std::vector<std::uint16_t> port_of_host;   ///< the leaf port that most of its HCAs have
    std::vector<double> alignment;             ///< by group: share of HCAs at that port; 0 = cannot be told
    /// The same, also of hosts of two HCAs: it shows which belong together, not which of two is misplaced.
    std::vector<double> agreement;
    std::uint32_t count = 0;  ///< groups, numbered by their first host

    /// The host that sits at `port` of the leaves of `group`; none when nobody does, or two.
    std::uint32_t host_at(std::uint32_t group, std::uint16_t port) const;

    std::unordered_map<std::uint64_t, std::uint32_t> host_of_port;  ///< group << 16 | port
};

/// Leaf groups are tolerant: two leaves belong together when most of the hosts on either are on both. Not
/// equal host sets (one down link would split a group), not connected components (one odd cable would join
/// two). A leaf that only few hosts reach goes where those hosts' other leaves are. `nameless`: HCAs that
/// some of these hosts have, though nobody knows which.
grouping group_hosts(const fabric& f, const hcas_of_hosts& hosts, const std::vector<std::uint32_t>& nameless);

/// The HCAs that were left out since nothing shows whose they are, ascending.
std::vector<std::uint32_t> unattributed_hcas(const fabric& f);

}  // namespace banyan::topo::build
