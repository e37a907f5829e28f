// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

struct half {
    guid a, b;
    std::uint16_t a_port, b_port;
    link_rate rate;

    auto key() const { return std::tuple(a, a_port, b, b_port); }
};

/// The GUID decides what a node is, not what its neighbour calls it. Routers and nodes without a record have
/// no index.
port_ref ref(const state& s, guid id, std::uint16_t port) {
    if (const auto at = s.hca_of.find(id); at != s.hca_of.end()) return {node_kind::hca, at->second, port};
    const auto at = s.switch_of.find(id);
    return {node_kind::switch_node, at == s.switch_of.end() ? none : at->second, port};
}

}  // namespace

void take_links(state& s) {
    std::vector<half> halves;
    for (const auto& n : s.source.nodes)
        for (const auto& p : n.peers) {
            if (p.peer == n.id) {
                s.out.defects.push_back(
                    {"loop", {n.name}, fmt::format("port {} leads back to the same node", p.port), 1.0});
                continue;
            }
            half h{n.id, p.peer, p.port, p.peer_port, p.rate};
            if (std::tuple(p.peer, p.peer_port) < std::tuple(n.id, p.port))
                h = {p.peer, n.id, p.peer_port, p.port, p.rate};
            halves.push_back(h);
        }
    std::sort(halves.begin(), halves.end(), [](const half& x, const half& y) { return x.key() < y.key(); });
    for (std::size_t i = 0; i < halves.size();) {
        std::size_t j = i + 1;
        while (j < halves.size() && halves[j].key() == halves[i].key()) ++j;
        const auto& h = halves[i];
        const link l{ref(s, h.a, h.a_port), ref(s, h.b, h.b_port), h.rate};
        const bool both = j - i >= 2;
        i = j;
        if (l.a.index == none || l.b.index == none) continue;
        s.out.links.push_back(l);
        if (!both)
            s.out.defects.push_back({"one-way-link",
                                     {fmt::format("0x{:016x} port {}", h.a, h.a_port),
                                      fmt::format("0x{:016x} port {}", h.b, h.b_port)},
                                     "only one end lists the link",
                                     1.0});
        for (const auto& [hca_end, switch_end] : {std::pair(l.a, l.b), std::pair(l.b, l.a)}) {
            if (hca_end.kind != node_kind::hca || switch_end.kind != node_kind::switch_node) continue;
            auto& hca = s.out.hcas[hca_end.index];
            hca.leaf = switch_end.index;
            hca.leaf_port = switch_end.port;
            hca.rate = l.rate;
        }
    }
}

}  // namespace banyan::topo::build
