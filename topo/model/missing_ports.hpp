// SPDX-License-Identifier: BSD-3-Clause
//
// Which ports lack the cables that a pair of switches should have. A dump lists connected ports only, so it
// is told by how the others are cabled: most lowers use the same ports for one upper, most uppers the same
// ports for one lower.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo::build {

/// One cable that should be there; port 0 = cannot be told.
struct missing_cable {
    std::uint16_t low_port = 0, high_port = 0;
};

class missing_ports {
  public:
    explicit missing_ports(const fabric& f);
    /// As many as `missing` says.
    std::vector<missing_cable> between(std::uint32_t low, std::uint32_t high, std::uint32_t missing);

    using ports = std::vector<std::uint16_t>;
    struct end {
        std::uint32_t sw, peer;
        std::uint16_t port, peer_port;
    };
    /// The ports that most of the peers of `sw` on that level have their cables to it on, ascending.
    const ports& usual_at_peers(std::uint32_t sw, unsigned level);
    /// The ends of its links to other switches, by peer, then by port.
    std::span<const end> ends_of(std::uint32_t sw) const;
    bool leads_to(std::uint32_t sw, std::uint16_t port, std::uint32_t peer) const;
    /// Whether nothing is on the port: there is no such port, or it has no link.
    bool dark(std::uint32_t sw, std::uint16_t port) const;

  private:
    /// Those of them that are free on `sw`, when they are as many as are missing.
    ports free_ones(std::uint32_t sw, const ports& candidates, std::uint32_t missing) const;

    const fabric& f_;
    std::vector<end> ends_;  ///< of links between switches: by switch, then by peer
    std::vector<std::pair<std::uint32_t, std::uint16_t>> taken_;  ///< switch and port, ascending
    std::map<std::pair<std::uint32_t, unsigned>, ports> usual_;
};

}  // namespace banyan::topo::build
