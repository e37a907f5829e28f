// SPDX-License-Identifier: BSD-3-Clause
#include <tuple>

#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

/// Whether node `n` lists the link from its port `port` to `peer`'s port `peer_port`.
bool lists(const state& s, std::uint32_t n, std::uint16_t port, guid peer, std::uint16_t peer_port) {
    for (const auto& p : s.source.ports_of(s.nodes[n]))
        if (p.port == port && p.peer == peer && p.peer_port == peer_port) return true;
    return false;
}

void take_link(state& s, std::uint32_t n, std::uint32_t port_index) {
    const auto& p = s.source.ports[port_index];
    const auto peer = s.peer_node[port_index];
    const auto& self = s.nodes[n];
    // Routers have no index; their links are of no use to anybody.
    if (s.place[n].index == none || s.place[peer].index == none) return;
    const bool other_lists = lists(s, peer, p.peer_port, self.id, p.port);
    const bool first = std::tuple(self.id, p.port) < std::tuple(p.peer, p.peer_port);
    if (other_lists && !first) return;  // taken from the other end
    const port_ref here{s.place[n].kind, s.place[n].index, p.port};
    const port_ref there{s.place[peer].kind, s.place[peer].index, p.peer_port};
    s.out.links.push_back(first ? link{here, there, p.rate} : link{there, here, p.rate});
    if (!other_lists && peer < s.with_record)
        s.report("one-way-link", {end_name(s.out, here), end_name(s.out, there)},
                 fmt::format("only {} lists the link", self.name), 1.0);
}

}  // namespace

void take_links(state& s) {
    for (std::uint32_t n = 0; n < s.with_record; ++n)
        for (auto i = s.nodes[n].first_port, end = i + s.nodes[n].port_count; i < end; ++i) {
            if (s.peer_node[i] != n) {
                take_link(s, n, i);
            } else if (s.place[n].index != none && s.source.ports[i].port <= s.source.ports[i].peer_port) {
                s.report("loop", {std::string(s.nodes[n].name)},
                         fmt::format("port {} leads to port {} of the same node", s.source.ports[i].port,
                                     s.source.ports[i].peer_port),
                         1.0);
            }
        }
}

}  // namespace banyan::topo::build
