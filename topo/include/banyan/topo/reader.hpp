// SPDX-License-Identifier: BSD-3-Clause
//
// Reading what the fabric's tools print (ibnetdiscover, iblinkinfo, ibdiagnet), and making the model of it.
// The text is not trusted: nothing in it can crash the reader, and nothing is dropped silently.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/site.hpp>

#include "common/result.hpp"

namespace banyan::topo {

/// A connected port of a node, as the node itself lists it.
struct dump_port {
    guid peer = 0;
    std::string_view peer_name;
    std::uint32_t peer_lid = 0;  ///< 0 = not given
    std::uint32_t lid = 0;       ///< of an HCA's or router's own port; 0 = not given
    std::uint8_t lmc = 0;        ///< it answers to 2^lmc LIDs from that on
    std::uint16_t port = 0;
    std::uint16_t peer_port = 0;
    node_kind peer_kind = node_kind::switch_node;
    link_rate rate;
};

/// One switch, HCA or router of the dump.
struct dump_node {
    guid id = 0;
    guid system = 0;  ///< system image GUID; 0 = not given
    std::string_view name;
    std::uint32_t lid = 0;         ///< of a switch, or of an HCA's first port
    std::uint32_t line = 0;        ///< where its record stands, from 1
    std::uint32_t first_port = 0;  ///< its connected ports are dump::ports[first_port .. + port_count)
    std::uint32_t port_count = 0;
    std::uint16_t ports = 0;   ///< external ports, connected or not
    std::uint16_t device = 0;  ///< its vendor's number of the chip; 0 = not given
    std::uint8_t lmc = 0;      ///< of a switch
    node_kind kind = node_kind::switch_node;
};

/// A line that could not be read, or a record that contradicts the others. The rest of the dump was read.
struct complaint {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::string what;
};

/// Owns the texts that its names point into (control characters as question marks); may be copied and moved.
struct dump {
    std::shared_ptr<const std::string> text;
    std::shared_ptr<const std::deque<std::string>>
        names;                     ///< those that do not stand in the text as they are
    std::vector<dump_node> nodes;  ///< in the order of the file
    std::vector<dump_port> ports;
    std::vector<complaint> complaints;
    std::uint32_t crc = 0;  ///< CRC-32C of the text as it was given
    untold_facts untold;
    bool plain_names = false;  ///< HCAs are called HOST or "HOST DEVICE": there is nothing to guess
    bool blocks = false;       ///< its leaves are the blocks of topology/block

    std::span<const dump_port> ports_of(const dump_node& n) const {
        return std::span(ports).subspan(n.first_port, n.port_count);
    }
};

constexpr std::size_t max_dump_bytes = std::size_t{1} << 30;

/// Takes what these print, told apart by what stands in it:
/// - ibnetdiscover: the plain form, also with -g, -f and --node-name-map, ibdiagnet's file of the same form,
/// and
///   the port list of -p;
/// - iblinkinfo, also with -l and -p. Without -l peers are found by their LIDs;
/// - ibdiagnet: ibdiagnet2.db_csv (its sections NODES, PORTS and LINKS) and ibdiagnet2.lst;
/// - opareport -o links and opaextractsellinks (Omni-Path); UFM's list of links;
/// - lldpcli -f keyvalue show neighbors, of many systems, each line behind the system's name;
/// - Slurm's topology.conf and topology.yaml, whoever wrote them: a tree, or blocks. What a source does not
/// tell
///   is in dump::untold. Their nodes have no GUIDs: those are made of the names.
/// The port list and iblinkinfo have no node GUIDs of HCAs: the GUID of the first port stands for it. Ports
/// of one description with neighbouring GUIDs are one HCA's. An error only where nothing usable is in
/// the text: empty, cut in the middle, or another tool's output (with a hint).
result<dump> read_dump(std::string text);
/// The same, where it is ibnetdiscover's anyway.
inline result<dump> read_ibnetdiscover(std::string text) { return read_dump(std::move(text)); }

/// The first line of ibdiagnet2.db_csv's sections; then read_health() has something to read in it too.
bool is_db_csv(std::string_view text);

/// What nodes of the fabric are called elsewhere.
struct name_map {
    std::map<guid, std::string> descriptions;  ///< they win over those in the dump
    /// A host as the fabric has it and its node in slurm.conf; either may come first, the same in all.
    std::vector<std::pair<std::string, std::string>> nodes;
};

/// What a dump cannot tell. All of it is optional.
struct build_options {
    std::int64_t created_unix_s = 0;  ///< recorded in the fabric
    name_map names;
    site_description site;
    const fabric* previous = nullptr;  ///< whose leaf groups keep their ids
};

/// Lines of GUID and quoted name, as in the node-name map of the InfiniBand tools, or of two plain words: a
/// host and its node. # comments.
result<name_map> read_name_map(std::string_view text);

/// What two files tell: a node-name map, and a site file (site.hpp). An empty path is none.
result<build_options> read_side_files(const std::string& names, const std::string& site);

/// Never fails: what does not fit the model is listed in excluded and defects.
fabric build_fabric(const dump& d, const build_options& options = {});

}  // namespace banyan::topo
