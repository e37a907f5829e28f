// SPDX-License-Identifier: BSD-3-Clause
//
// A LID is one port's, or that of an HCA whose ports are planes of one link. Where two have it, packets for
// one reach the other: two subnet managers, or one that was started with an old list. A port that has none
// was never configured.
#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/counted.hpp"
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

/// One defect, however many have the LID: of the second on that have it as their first.
void tell(state& s, std::vector<holder>& same) {
    constexpr std::size_t named = 16;
    std::vector<std::string> names, where;
    for (std::size_t i = 0; i < same.size() && i < named; ++i) {
        names.push_back(name_of(s, same[i]));
        where.push_back(hex(s.nodes[same[i].node].id));
    }
    const auto lid = same[1].lid;
    const auto more = same.size() - names.size();
    s.report("duplicate-lid", std::move(names),
             (same.size() == 2 ? fmt::format("both answer to LID {}", lid)
                               : fmt::format("{} ports answer to LID {}", same.size(), lid)) +
                 (more > 0 ? fmt::format(", {} of them not named here", more) : ""),
             1.0, std::move(where));
    same.clear();
}

}  // namespace

namespace {

/// One defect for all: whatever keeps the subnet manager from them is one thing.
void find_ports_without_lid(state& s) {
    std::size_t ports = 0;
    std::vector<std::string> names, hosts, where;
    for (std::uint32_t n = 0; n < s.with_record; ++n) {
        const auto& node = s.nodes[n];
        const auto index = s.place[n].index;
        if (index == none) continue;
        const bool is_switch = node.kind == node_kind::switch_node;
        std::size_t count = is_switch && node.lid == no_lid ? 1 : 0;
        if (!is_switch)
            for (const auto& p : s.source.ports_of(node)) count += p.lid == no_lid;
        if (count == 0) continue;
        ports += count;
        where.push_back(hex(node.id));
        if (is_switch)
            names.push_back(label(s, index));
        else if (s.hca_names[index].kind == hca_name::trust::named)
            hosts.emplace_back(s.hca_names[index].host);
        else
            names.push_back(s.out.hcas[index].name);
    }
    if (ports == 0) return;
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    if (!hosts.empty()) names.insert(names.begin(), compress_hostlist(hosts));
    constexpr std::size_t room = 64;
    const auto of_hosts = hosts.empty()                  ? std::string()
                          : names.front().size() <= room ? fmt::format(" (hosts {})", names.front())
                                                         : fmt::format(" (of {} hosts)", hosts.size());
    s.report("no-lid", std::move(names),
             fmt::format("{} no LID: the subnet manager has not configured {}{}",
                         counted(ports, "port has", "ports have"), ports == 1 ? "it" : "them", of_hosts),
             1.0, std::move(where));
}

/// Ports of one HCA may answer to one LID: each is a plane of it.
bool are_one(const dump_node& a, const dump_node& b) {
    return a.id == b.id ||
           (a.kind == node_kind::hca && b.kind == node_kind::hca && a.system != 0 && a.system == b.system);
}

}  // namespace

void find_bad_lids(state& s) {
    find_ports_without_lid(s);
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
        if (lid != 0 && lid != no_lid) all.push_back({subnet[node], lid, node, port, lid + (1u << lmc) - 1});
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
    std::vector<holder> same;
    for (std::size_t i = 1; i < all.size(); ++i) {
        const auto &x = all[first], &y = all[i];
        if (!same.empty() && (y.subnet != same[0].subnet || y.lid != same[1].lid)) tell(s, same);
        if (x.subnet == y.subnet && y.lid <= x.last && !are_one(s.nodes[x.node], s.nodes[y.node])) {
            if (same.empty()) same.push_back(x);
            same.push_back(y);
        }
        if (x.subnet != y.subnet || y.last > x.last) first = i;
    }
    if (!same.empty()) tell(s, same);
}

}  // namespace banyan::topo::build
