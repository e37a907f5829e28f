// SPDX-License-Identifier: BSD-3-Clause
//
// A LID is one port's. Where two have it, packets for one reach the other: two subnet managers, or one that
// was started with an old list.
#include <algorithm>

#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/union_find.hpp"

namespace banyan::topo::build {
namespace {

struct holder {
    std::uint32_t subnet, lid, node;
    std::uint16_t port;  ///< 0 of a switch
    std::uint32_t last;  ///< it answers to lid..last
};

std::string name_of(const state& s, const holder& h) {
    const auto& n = s.nodes[h.node];
    if (n.kind == node_kind::switch_node) return label(s, s.place[h.node].index);
    return fmt::format("{} port {}", n.name, h.port);
}

}  // namespace

void find_duplicate_lids(state& s) {
    // Each subnet counts its LIDs anew: a dump may hold several.
    union_find sets(s.nodes.size());
    for (std::uint32_t n = 0; n < s.with_record; ++n)
        for (auto i = s.nodes[n].first_port, end = i + s.nodes[n].port_count; i < end; ++i)
            // A router's ports are each in a subnet of their own.
            if (s.nodes[n].kind != node_kind::router && s.nodes[s.peer_node[i]].kind != node_kind::router)
                sets.join(n, s.peer_node[i]);
    const auto subnet = sets.smallest();
    std::vector<holder> all;
    const auto add = [&](std::uint32_t node, std::uint16_t port, std::uint32_t lid, std::uint8_t lmc) {
        if (lid != 0) all.push_back({subnet[node], lid, node, port, lid + (1u << lmc) - 1});
    };
    for (std::uint32_t n = 0; n < s.with_record; ++n) {
        const auto& node = s.nodes[n];
        if (s.place[n].index == none) continue;
        if (node.kind == node_kind::switch_node) {
            add(n, 0, node.lid, node.lmc);
            continue;
        }
        for (const auto& p : s.source.ports_of(node)) add(n, p.port, p.lid, p.lmc);
    }
    std::sort(all.begin(), all.end(), [](const holder& x, const holder& y) {
        return std::tuple(x.subnet, x.lid, x.node, x.port) < std::tuple(y.subnet, y.lid, y.node, y.port);
    });
    std::size_t first = 0;  // which reaches farthest of those before
    for (std::size_t i = 1; i < all.size(); ++i) {
        const auto &x = all[first], &y = all[i];
        if (x.subnet == y.subnet && y.lid <= x.last && (x.node != y.node || x.port != y.port))
            s.report("duplicate-lid", {name_of(s, x), name_of(s, y)},
                     fmt::format("both answer to LID {}", y.lid), 1.0,
                     {hex(s.nodes[x.node].id), hex(s.nodes[y.node].id)});
        if (x.subnet != y.subnet || y.last > x.last) first = i;
    }
}

}  // namespace banyan::topo::build
