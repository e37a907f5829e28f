// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/routing.hpp>

namespace banyan::topo {
namespace {

/// The ports of each switch that lead up, and how many destinations they carry; UINT32_MAX for other ports.
std::vector<std::vector<std::uint32_t>> upward_ports(const fabric& f) {
    std::vector<std::vector<std::uint32_t>> out(f.switches.size());
    const auto add = [&](const port_ref& low, const port_ref& high) {
        const auto from = f.switches[low.index].level, to = f.switches[high.index].level;
        if (to == UINT8_MAX || to != from + 1) return;
        auto& ports = out[low.index];
        if (ports.size() <= low.port) ports.resize(low.port + 1u, UINT32_MAX);
        ports[low.port] = 0;
    };
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        add(l.a, l.b);
        add(l.b, l.a);
    }
    return out;
}

void take_port(route_balance& b, std::uint32_t sw, std::uint16_t port, std::uint32_t destinations) {
    if (b.links == 0 || destinations < b.least) b.least = destinations;
    if (b.links == 0 || destinations > b.most) {
        b.most = destinations;
        b.busiest = {node_kind::switch_node, sw, port};
    }
    ++b.links;
    b.mean += (destinations - b.mean) / b.links;
}

}  // namespace

std::vector<route_balance> balance_of(const fabric& f, const routing& r) {
    auto load = upward_ports(f);
    std::vector<route_balance> out;
    for (std::uint32_t sw = 0; sw < f.switches.size(); ++sw) {
        if (load[sw].empty()) continue;
        const std::size_t level = f.switches[sw].level;
        if (out.size() <= level) out.resize(level + 1);
        out[level].level = static_cast<unsigned>(level);
        for (const auto& h : f.hcas) {
            if (h.host == none || h.lid == 0) continue;
            const auto port = r.port_to(f.switches[sw].id, h.lid);
            if (port == routing::no_route)
                ++out[level].without_route;
            else if (port < load[sw].size() && load[sw][port] != UINT32_MAX)
                ++load[sw][port];
        }
        for (std::size_t port = 0; port < load[sw].size(); ++port)
            if (load[sw][port] != UINT32_MAX)
                take_port(out[level], sw, static_cast<std::uint16_t>(port), load[sw][port]);
    }
    return out;
}

}  // namespace banyan::topo
