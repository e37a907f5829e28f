// SPDX-License-Identifier: BSD-3-Clause
//
// Unicast forwarding tables, as dump_lfts and dump_fts print them: through which port each switch sends to
// each LID. With them the load of a link is known instead of assumed.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"

namespace banyan::topo {

struct routing {
    static constexpr std::uint16_t no_route = UINT16_MAX;
    /// Switch GUID -> output port by LID (0 = the switch itself); no_route where the table has no entry.
    std::unordered_map<guid, std::vector<std::uint16_t>> ports;
    std::size_t skipped_lines = 0;  ///< lines that could not be read

    std::uint16_t port_to(guid sw, std::uint32_t lid) const {
        const auto at = ports.find(sw);
        return at == ports.end() || lid >= at->second.size() ? no_route : at->second[lid];
    }
};

constexpr std::size_t max_routing_bytes = std::size_t{1} << 30;

/// An error where the text has no table.
result<routing> read_routing(std::string_view text);

/// Indices into fabric::links on the way from one HCA to another, first hop first; empty when a table has no
/// entry, leads nowhere, or leads in a circle.
class router {
  public:
    router(const fabric& f, const routing& r);
    std::vector<std::uint32_t> path(std::uint32_t from_hca, std::uint32_t to_hca) const;

  private:
    std::uint32_t link_at(node_kind kind, std::uint32_t index, std::uint16_t port) const;
    const fabric& f_;
    const routing& r_;
    std::unordered_map<std::uint64_t, std::uint32_t> link_of_port_;
};

/// How evenly the tables spread destinations over the links that lead up from one level.
struct route_balance {
    unsigned level = 0;  ///< of the switches below the links
    std::uint32_t links = 0;
    std::uint32_t least = 0, most = 0;  ///< compute HCAs that one of those links leads to
    double mean = 0;
    port_ref busiest;                 ///< the lower end of a link with `most`
    std::uint32_t without_route = 0;  ///< pairs of a switch and a compute HCA without an entry
};

/// By level, leaves first.
std::vector<route_balance> balance_of(const fabric& f, const routing& r);

}  // namespace banyan::topo
