// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::build {
namespace {

using node_index = boost::unordered_flat_map<guid, std::uint32_t>;

/// Joins by GUID. The first record of a GUID counts.
node_index index_records(state& s) {
    node_index out;
    out.reserve(s.nodes.size());
    for (std::uint32_t i = 0; i < s.nodes.size(); ++i) {
        const auto [at, fresh] = out.try_emplace(s.nodes[i].id, i);
        if (fresh) continue;
        if (!s.counts_only("duplicate-guid"))
            s.report("duplicate-guid", {hex(s.nodes[i].id)},
                     fmt::format("records at lines {} and {}; the first is taken", s.nodes[at->second].line,
                                 s.nodes[i].line),
                     1.0);
        s.nodes[i].port_count = 0;
    }
    return out;
}

/// A peer without a record is taken as its neighbours describe it: a dirty dump must not lose a host's rail.
void find_peers(state& s, node_index& known) {
    s.peer_node.resize(s.source.ports.size(), none);
    for (std::uint32_t n = 0; n < s.with_record; ++n)
        for (auto i = s.nodes[n].first_port, end = i + s.nodes[n].port_count; i < end; ++i) {
            const auto& p = s.source.ports[i];
            const auto [at, fresh] = known.try_emplace(p.peer, static_cast<std::uint32_t>(s.nodes.size()));
            s.peer_node[i] = at->second;
            if (!fresh) continue;
            dump_node stub;
            stub.id = p.peer;
            stub.kind = p.peer_kind;
            stub.name = p.peer_name;
            stub.lid = p.peer_lid;
            s.nodes.push_back(stub);
            if (s.counts_only("no-record")) continue;
            s.report(
                "no-record", {hex(p.peer), std::string(p.peer_name)},
                fmt::format("named by {} port {}, but its own record is missing; taken as its neighbours "
                            "describe it",
                            s.nodes[n].name, p.port),
                1.0);
        }
}

void take(state& s, std::uint32_t index) {
    const auto& n = s.nodes[index];
    const auto& given = s.options.names.descriptions;
    const auto mapped = given.empty() ? given.end() : given.find(n.id);
    const std::string name(mapped == given.end() ? n.name : std::string_view(mapped->second));
    auto& place = s.place[index];
    place.kind = n.kind;
    if (n.kind == node_kind::router) {
        s.out.excluded.push_back(
            {n.id, name, "router", "its record is that of a router: the subnet ends there"});
    } else if (n.kind == node_kind::switch_node) {
        place.index = static_cast<std::uint32_t>(s.out.switches.size());
        switch_node sw;
        sw.id = n.id;
        sw.name = name;
        sw.lid = n.lid;
        sw.ports = n.ports;
        sw.device = n.device;
        sw.box = place.index;
        s.out.switches.push_back(std::move(sw));
    } else {
        place.index = static_cast<std::uint32_t>(s.out.hcas.size());
        hca h;
        h.id = n.id;
        h.name = name;
        h.lid = n.lid == no_lid ? 0 : n.lid;
        s.out.hcas.push_back(std::move(h));
        s.system_of_hca.push_back(n.system);
        s.chip_of_hca.push_back(n.device);
        s.without_lid.push_back(n.lid == no_lid);
    }
}

/// Hosts go by the names of their nodes in slurm.conf. Which of two words is the host's is what more of the
/// fabric's hosts agree on.
void take_node_names(state& s) {
    boost::unordered_flat_map<std::string_view, std::string_view> first, second;
    for (const auto& [a, b] : s.options.names.nodes) first.emplace(a, b), second.emplace(b, a);
    std::size_t by_first = 0, by_second = 0;
    for (const auto& n : s.hca_names)
        by_first += first.contains(n.host), by_second += second.contains(n.host);
    const auto& node_of = by_second > by_first ? second : first;
    for (auto& n : s.hca_names)
        if (const auto at = node_of.find(n.host); at != node_of.end()) n.host = at->second;
}

}  // namespace

void take_nodes(state& s) {
    s.nodes = s.source.nodes;
    s.with_record = s.nodes.size();
    auto known = index_records(s);
    find_peers(s, known);
    s.place.resize(s.nodes.size());
    std::vector<std::uint32_t> by_guid;
    by_guid.reserve(s.nodes.size());
    for (std::uint32_t i = 0; i < s.nodes.size(); ++i)
        if (known.at(s.nodes[i].id) == i) by_guid.push_back(i);
    std::sort(by_guid.begin(), by_guid.end(), [&](auto a, auto b) { return s.nodes[a].id < s.nodes[b].id; });
    for (const auto i : by_guid) take(s, i);
    s.names = switch_names(s.out);
    std::vector<std::string_view> descriptions;
    descriptions.reserve(s.out.hcas.size());
    for (const auto& h : s.out.hcas) descriptions.push_back(h.name);
    s.hca_names = s.source.plain_names ? split_hca_names(descriptions) : read_hca_names(descriptions);
    take_node_names(s);
    for (std::size_t i = 0; i < s.out.hcas.size(); ++i) s.out.hcas[i].device = s.hca_names[i].device_name;
}

}  // namespace banyan::topo::build
