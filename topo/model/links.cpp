// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

/// Whether node `n` lists the link from its port `port` to `peer`'s port `peer_port`.
bool lists(const state& s, std::uint32_t n, std::uint16_t port, guid peer, std::uint16_t peer_port) {
    const auto ports = s.source.ports_of(s.nodes[n]);
    const auto same = [&](const dump_port& p) {
        return p.port == port && p.peer == peer && p.peer_port == peer_port;
    };
    // Ports stand in ascending order, except in a dump that somebody has edited.
    const auto near =
        std::lower_bound(ports.begin(), ports.end(), port,
                         [](const dump_port& p, std::uint16_t wanted) { return p.port < wanted; });
    return (near != ports.end() && same(*near)) || std::any_of(ports.begin(), ports.end(), same);
}

std::string node_name(const state& s, std::uint32_t n) {
    return s.place[n].kind == node_kind::switch_node && s.place[n].index != none
               ? label(s, s.place[n].index)
               : std::string(s.nodes[n].name);
}

/// Returns whether only this end lists it.
bool take_link(state& s, std::uint32_t n, std::uint32_t port_index) {
    const auto& p = s.source.ports[port_index];
    const auto peer = s.peer_node[port_index];
    const auto& self = s.nodes[n];
    // Routers have no index, and no links here: where the subnet ends is told with them.
    if (s.nodes[peer].kind == node_kind::router && s.place[n].index != none)
        for (auto& e : s.out.excluded)
            if (e.id == p.peer) e.why += fmt::format("; on {} port {}", node_name(s, n), p.port);
    if (s.place[n].index == none || s.place[peer].index == none) return false;
    const bool other_lists = lists(s, peer, p.peer_port, self.id, p.port);
    const bool first = std::tuple(self.id, p.port) < std::tuple(p.peer, p.peer_port);
    if (other_lists && !first) return false;  // taken from the other end
    const port_ref here{s.place[n].kind, s.place[n].index, p.port};
    const port_ref there{s.place[peer].kind, s.place[peer].index, p.peer_port};
    s.out.links.push_back(first ? link{here, there, p.rate} : link{there, here, p.rate});
    if (!other_lists && peer < s.with_record)
        s.report("one-way-link", {end_name(s, here), end_name(s, there)},
                 fmt::format("only {} lists the link", end_name(s, here)), 1.0,
                 {port_id(s.out, here), port_id(s.out, there)});
    return !other_lists;
}

/// A port has one cable. Where two links claim it, one end's record is old or wrong, and nobody can say
/// which.
void find_doubled_ports(state& s) {
    const auto& links = s.out.links;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> ends;
    ends.reserve(2 * links.size());
    for (std::uint32_t i = 0; i < links.size(); ++i)
        for (const auto& e : {links[i].a, links[i].b})
            ends.emplace_back(
                (e.kind == node_kind::hca ? 0 : 1ull << 63) | std::uint64_t{e.index} << 16 | e.port, i);
    std::sort(ends.begin(), ends.end());
    for (std::size_t i = 1; i < ends.size(); ++i) {
        if (ends[i].first != ends[i - 1].first) continue;
        const auto &x = links[ends[i - 1].second], &y = links[ends[i].second];
        const bool at_a = x.a == y.a || x.a == y.b;
        const auto& port = at_a ? x.a : x.b;
        const auto& one = at_a ? x.b : x.a;
        const auto& other = y.a == port ? y.b : y.a;
        s.report(
            "doubled-port", {end_name(s, port)},
            fmt::format("{} and {} both claim to be at its other end", end_name(s, one), end_name(s, other)),
            1.0, {port_id(s.out, port)});
    }
}

}  // namespace

void take_links(state& s) {
    bool doubtful = false;
    for (std::uint32_t n = 0; n < s.with_record; ++n)
        for (auto i = s.nodes[n].first_port, end = i + s.nodes[n].port_count; i < end; ++i) {
            if (s.peer_node[i] != n) {
                const auto& ports = s.source.ports;
                doubtful |= i > s.nodes[n].first_port && ports[i - 1].port == ports[i].port;
                doubtful |= take_link(s, n, i);
            } else if (s.place[n].index != none && s.source.ports[i].port <= s.source.ports[i].peer_port) {
                s.report("loop", {node_name(s, n)},
                         fmt::format("port {} leads to port {} of the same node", s.source.ports[i].port,
                                     s.source.ports[i].peer_port),
                         1.0, {port_id(s.nodes[n].id, s.source.ports[i].port)});
            }
        }
    if (doubtful) find_doubled_ports(s);
}

}  // namespace banyan::topo::build
