// SPDX-License-Identifier: BSD-3-Clause
//
// The tree that neighbours of ports make.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <banyan/topo/reader.hpp>

namespace banyan::topo {

/// One neighbour of one port.
struct lldp_neighbour {
    std::string_view local, port, name, chassis, peer_port;
    std::uint32_t line = 0;
    std::optional<bool> forwards;  ///< whether it says that it is a bridge or a router
    bool mac_port = false;         ///< it calls its port by a MAC address, as a NIC does; switches give names
};

/// What was told, in the order of the text. Views into it.
struct lldp_neighbours {
    std::vector<lldp_neighbour> all;
    std::map<std::string_view, std::uint32_t> reported;  ///< the systems that were asked -> their first line
};

/// Fills the dump. Two systems that are one by their names and not by their chassis are an error.
result<void> read_lldp_tree(const lldp_neighbours& told, dump& out);

}  // namespace banyan::topo
