// SPDX-License-Identifier: BSD-3-Clause
//
// Gateways, routers and hosts on spines and cores, on the ports after all cables of each; and racks that are
// off.
#include <numeric>

#include <fmt/format.h>

#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {
namespace {

constexpr guid gateway_guids = 0xa088c20420000000, core_host_guids = 0xa088c20430000000,
               router_guids = 0xa088c20440000000;

std::vector<std::uint16_t> last_ports(const blueprint& b) {
    std::vector<std::uint16_t> last(b.nodes.size());
    for (const auto& c : b.cables) {
        last[c.a] = std::max(last[c.a], c.a_port);
        last[c.b] = std::max(last[c.b], c.b_port);
    }
    return last;
}

}  // namespace

void add_hosts_above(blueprint& b) {
    const auto& n = b.n;
    const auto planes = b.o.planes, spines = n.spine_groups * n.spines, cores = n.core_fan * n.spines;
    auto last = last_ports(b);
    const auto put = [&](std::uint32_t count, const char* kind, std::uint32_t first, std::uint32_t of,
                         guid ids, role is = role::service) {
        for (std::uint32_t i = 0; i < count; ++i) {
            node what;
            what.id = what.system = ids + guid{i + 1} * 0x10;
            what.name = fmt::format("{}{:02} mlx5_0", kind, i + 1);
            what.what = is;
            what.ports = static_cast<std::uint16_t>(planes);
            const auto box = first + i % of * planes;
            const auto port = ++last[box];
            for (std::uint32_t p = 0; p < planes; ++p) {
                last[box + p] = port;
                b.cables.push_back({static_cast<std::uint32_t>(b.nodes.size()), box + p,
                                    static_cast<std::uint16_t>(p + 1), port, n.rate});
            }
            b.nodes.push_back(std::move(what));
        }
    };
    put(b.o.gateways, "io", b.first_spine, spines, gateway_guids);
    put(b.o.routers, "rt", b.first_spine, spines, router_guids, role::router);
    if (cores > 0) put(b.o.core_hosts, "ioc", b.first_core, cores, core_host_guids);
}

void switch_racks_off(blueprint& b, dice& random) {
    const auto& o = b.o;
    if (o.racks_off == 0) return;
    const auto size = o.rack_size > 0 ? o.rack_size : o.group_size;
    auto racks = std::vector<std::uint32_t>((o.hosts + size - 1) / size);
    std::iota(racks.begin(), racks.end(), 0u);
    random.shuffle(racks);
    racks.resize(
        std::max<std::size_t>(1, static_cast<std::size_t>(o.racks_off * static_cast<double>(racks.size()))));
    for (const auto rack : racks)
        for (auto h = rack * size; h < std::min(o.hosts, (rack + 1) * size); ++h) b.hosts[h].off = true;
    for (auto& n : b.nodes)
        if (n.host != none && b.hosts[n.host].off) n.gone = true;
}

}  // namespace banyan::topo::generate
