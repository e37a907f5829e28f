// SPDX-License-Identifier: BSD-3-Clause
#include "dump_writer.hpp"

#include <fmt/format.h>

namespace banyan::topo::test {

guid dump_writer::add(char kind, const std::string& name) {
    // Far apart where there are so many that they would meet.
    const auto n = nodes_.size();
    const guid id = (guid{kind == 'S' ? 0x5000u : 0xa000u} << (n < 0x400 ? 0 : 16)) + 0x10 * n;
    nodes_[id] = {kind, name, {}};
    return id;
}

guid dump_writer::add_switch(const std::string& name) { return add('S', name); }
guid dump_writer::add_hca(const std::string& name) { return add('H', name); }
guid dump_writer::add_router(const std::string& name) { return add('R', name); }

void dump_writer::link(guid a, unsigned a_port, guid b, unsigned b_port, const std::string& rate) {
    nodes_.at(a).ports[a_port] = {b, b_port, rate};
    nodes_.at(b).ports[b_port] = {a, a_port, rate};
}

void dump_writer::remove(guid n) { nodes_.erase(n); }

void dump_writer::forget(guid n, unsigned port) { nodes_.at(n).ports.erase(port); }

namespace {

/// Every port has one of its own; of a switch all have that of port 0.
guid lid_of(guid id, char kind, unsigned port) {
    const auto index = (id - (kind == 'S' ? 0x5000 : 0xa000)) / 0x10;
    return 1 + 64 * index + (kind == 'S' ? 0 : port);
}

}  // namespace

std::string dump_writer::text() const {
    std::string out = "#\n# Topology file: generated on Sat Nov 21 02:03:10 2026\n#\n";
    for (const auto& [id, n] : nodes_) {
        const auto word = n.kind == 'S' ? "Switch" : n.kind == 'H' ? "Ca" : "Rt";
        out += fmt::format(
            "\nvendid=0x2c9\ndevid=0xd2f2\n{}\t64 \"{}-{:016x}\"\t\t# \"{}\"{}\n", word, n.kind, id, n.name,
            n.kind == 'S' ? fmt::format(" enhanced port 0 lid {} lmc 0", lid_of(id, 'S', 0)) : "");
        for (const auto& [port, e] : n.ports) {
            const auto& peer = nodes_.at(e.peer);
            const auto peer_lid = lid_of(e.peer, peer.kind, e.peer_port);
            if (n.kind == 'S')
                out += fmt::format("[{}]\t\"{}-{:016x}\"[{}] \t\t# \"{}\" lid {} {}\n", port, peer.kind,
                                   e.peer, e.peer_port, peer.name, peer_lid, e.rate);
            else
                out += fmt::format("[{}]({:x}) \t\"{}-{:016x}\"[{}]\t\t# lid {} lmc 0 \"{}\" lid {} {}\n",
                                   port, id + port, peer.kind, e.peer, e.peer_port, lid_of(id, n.kind, port),
                                   peer.name, peer_lid, e.rate);
        }
    }
    return out;
}

fabric dump_writer::model(const build_options& options) const {
    return build_fabric(read_ibnetdiscover(text()).value(), options);
}

rail_fabric::rail_fabric(unsigned groups, unsigned hosts, unsigned rails, unsigned spine_count) {
    for (unsigned s = 0; s < spine_count; ++s) spines.push_back(add_switch(fmt::format("spine-{}", s)));
    leaves.resize(groups);
    hcas.resize(groups);
    for (unsigned g = 0; g < groups; ++g) {
        for (unsigned r = 0; r < rails; ++r) {
            leaves[g].push_back(add_switch(fmt::format("leaf-{}-{}", g, r)));
            for (unsigned s = 0; s < spine_count; ++s)
                link(leaves[g][r], 33 + s, spines[s], 1 + g * rails + r);
        }
        for (unsigned h = 0; h < hosts; ++h) {
            auto& mine = hcas[g].emplace_back();
            for (unsigned r = 0; r < rails; ++r) {
                mine.push_back(add_hca(fmt::format("g{}n{:02} mlx5_{}", g, h, r)));
                link(mine.back(), 1, leaves[g][r], h + 1);
            }
        }
    }
}

}  // namespace banyan::topo::test
