// SPDX-License-Identifier: BSD-3-Clause
#include "form_writer.hpp"

#include <map>

#include <fmt/format.h>

namespace banyan::topo::test {
namespace {

struct lane {
    unsigned gbps10;
    unsigned code;
    const char *list, *info;
};
constexpr lane lanes[] = {{20, 1, "2.5", "2.5"},         {40, 2, "5", "5.0"},
                          {80, 4, "10", "10.0"},         {136, 256, "14", "14.0625"},
                          {250, 512, "25", "25.78125"},  {500, 1024, "50", "53.125"},
                          {1000, 2048, "100", "106.25"}, {2000, 4096, "200", "212.5"}};

const lane& lane_of(const link_rate& r) {
    for (const auto& l : lanes)
        if (l.gbps10 == r.lane_gbps10) return l;
    return lanes[0];
}

unsigned width_code(unsigned width) {
    return width == 2 ? 16 : width == 12 ? 8 : width == 8 ? 4 : width == 4 ? 2 : 1;
}

std::map<guid, const dump_node*> by_guid(const dump& d) {
    std::map<guid, const dump_node*> out;
    for (const auto& n : d.nodes) out.emplace(n.id, &n);
    return out;
}

std::uint32_t lid_of(const dump_node& n, const dump_port& p) {
    return n.kind == node_kind::switch_node ? n.lid : p.lid;
}

/// The port list and iblinkinfo have those of ports: here the first port's is the node's, so that models can
/// be compared.
guid port_guid(const dump_node& n, unsigned port) {
    return n.kind == node_kind::switch_node ? n.id : n.id + port - 1;
}

std::string end_of_list(const dump_node& n, unsigned port, std::uint32_t lid) {
    return fmt::format(
        "{{ {} Ports:{:02x} SystemGUID:{:016x} NodeGUID:{:016x} PortGUID:{:016x} VenID:000002C9 "
        "DevID:{:04x} Rev:000000A0 {{{}}} LID:{:04x} PN:{:02X} }}",
        n.kind == node_kind::switch_node ? "SW" : "CA", n.ports, n.system, n.id, n.id + port, n.device,
        n.name, lid, port);
}

}  // namespace

std::string as_db_csv(const dump& d, const std::string& more) {
    std::string
        nodes =
            "START_NODES\nNodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,"
            "PortGUID,DeviceID\n",
        ports = "\nSTART_PORTS\nNodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkSpeedActv,LMC\n",
        links = "\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n";
    for (const auto& n : d.nodes) {
        const bool is_switch = n.kind == node_kind::switch_node;
        nodes += fmt::format("\"{}\",{},{},1,1,0x{:016x},0x{:016x},0x{:016x},{}\n", n.name, n.ports,
                             is_switch ? 2 : 1, n.system, n.id, n.id, n.device);
        if (is_switch) ports += fmt::format("0x{0:016x},0x{0:016x},0,{1},0,0,0\n", n.id, n.lid);
        for (const auto& p : d.ports_of(n)) {
            ports += fmt::format("0x{:016x},0x{:016x},{},{},{},{},0\n", n.id, n.id + p.port, p.port, p.lid,
                                 width_code(p.rate.width), lane_of(p.rate).code);
            if (std::pair(n.id, p.port) < std::pair(p.peer, p.peer_port))
                links += fmt::format("0x{:016x},{},0x{:016x},{}\n", n.id, p.port, p.peer, p.peer_port);
        }
    }
    return "# db\n" + nodes + "END_NODES\n" + more + ports + "END_PORTS\n" + links + "END_LINKS\n";
}

std::string as_link_list(const dump& d, bool both) {
    const auto known = by_guid(d);
    std::string out;
    for (const auto& n : d.nodes)
        for (const auto& p : d.ports_of(n)) {
            if (!both && std::pair(n.id, p.port) > std::pair(p.peer, p.peer_port)) continue;
            const auto& peer = *known.at(p.peer);
            std::uint32_t peer_lid = peer.lid;
            for (const auto& q : d.ports_of(peer))
                if (q.port == p.peer_port) peer_lid = lid_of(peer, q);
            out += fmt::format("{} {} PHY={}x LOG=ACT SPD={}\n", end_of_list(n, p.port, lid_of(n, p)),
                               end_of_list(peer, p.peer_port, peer_lid), p.rate.width, lane_of(p.rate).list);
        }
    return out;
}

std::string as_port_list(const dump& d) {
    const auto known = by_guid(d);
    const auto end = [](const dump_node& n, unsigned port, std::uint32_t lid) {
        return fmt::format("{} {:>5} {:>2} 0x{:016x}", n.kind == node_kind::switch_node ? "SW" : "CA", lid,
                           port, port_guid(n, port));
    };
    const auto speed = [](const link_rate& r) {
        return r.lane_gbps10 == 1000 ? "NDR" : r.lane_gbps10 == 500 ? "HDR" : "EDR";
    };
    std::string out;
    for (const auto& n : d.nodes) {
        for (const auto& p : d.ports_of(n)) {
            const auto& peer = *known.at(p.peer);
            std::uint32_t peer_lid = peer.lid;
            for (const auto& q : d.ports_of(peer))
                if (q.port == p.peer_port) peer_lid = lid_of(peer, q);
            out += fmt::format("{} {}x {} - {} ( '{}' - '{}' )\n", end(n, p.port, lid_of(n, p)), p.rate.width,
                               speed(p.rate), end(peer, p.peer_port, peer_lid), n.name, peer.name);
        }
        if (n.kind == node_kind::switch_node)
            out += fmt::format("{} 4x SDR '{}'\n", end(n, n.ports, n.lid), n.name);
    }
    return out;
}

std::string as_link_info(const dump& d, bool lines) {
    const auto known = by_guid(d);
    std::string out;
    for (const auto& n : d.nodes) {
        const bool is_switch = n.kind == node_kind::switch_node;
        if (!lines)
            out += is_switch ? fmt::format("Switch: 0x{:016x} {}:\n", n.id, n.name)
                             : fmt::format("CA: {}:\n", n.name);
        const auto self = [&](unsigned port, std::uint32_t lid) {
            if (lines)
                return fmt::format("0x{:016x} \"{:>30}\" {:>6} {:>4}[  ] ", port_guid(n, port), n.name, lid,
                                   port);
            return is_switch ? fmt::format("{:>12} {:>4}[  ] ", lid, port)
                             : fmt::format("      0x{:016x} {:>6} {:>4}[  ] ", port_guid(n, port), lid, port);
        };
        for (const auto& p : d.ports_of(n)) {
            const auto& peer = *known.at(p.peer);
            std::uint32_t peer_lid = peer.lid;
            for (const auto& q : d.ports_of(peer))
                if (q.port == p.peer_port) peer_lid = lid_of(peer, q);
            out += fmt::format("{}==( {}X {:>13} Gbps Active/  LinkUp)==>  {}{:>6} {:>4}[  ] \"{}\" ( )\n",
                               self(p.port, lid_of(n, p)), p.rate.width, lane_of(p.rate).info,
                               lines ? fmt::format("0x{:016x} ", port_guid(peer, p.peer_port)) : "", peer_lid,
                               p.peer_port, peer.name);
        }
        if (is_switch)
            out += self(n.ports, n.lid) + "==(                Down/ Polling)==>             [  ] \"\" ( )\n";
    }
    return out;
}

}  // namespace banyan::topo::test
