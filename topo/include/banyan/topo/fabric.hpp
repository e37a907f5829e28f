// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric as everything else sees it: plain data, joined by index. Built from a dump (reader.hpp), kept in
// a file (snapshot.hpp), compared (diff.hpp), placed on (placement.hpp). No part of it depends on Slurm, on
// time or on a network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <banyan/topo/tier.hpp>

namespace banyan::topo {

using guid = std::uint64_t;

/// Link width in lanes (1, 2, 4, 8, 12; 0 = not known) and rate of one lane in Gbit/s times 10 (0 = not
/// known).
struct link_rate {
    std::uint16_t width = 0;
    std::uint16_t lane_gbps10 = 0;
    bool operator==(const link_rate&) const = default;
};

enum class node_kind : std::uint8_t { switch_node, hca, router };

struct switch_node {
    guid id = 0;
    std::string name;         ///< node description, as the switch gives it
    std::uint32_t lid = 0;    ///< may differ after a restart of the subnet manager
    std::uint16_t ports = 0;  ///< external ports, connected or not
    std::uint8_t level = 0;  ///< 0 = leaf (has hosts), 1 = spine, 2 = core, ...; UINT8_MAX = no way to a host
    /// A box of several planes (Quantum-X800: four) is several switches; this is the index of the one that
    /// stands for all of them, its own where it is alone. A plane is not a rail: it is a share of each HCA's
    /// link.
    std::uint32_t box = none;
    std::uint8_t plane = 0;    ///< 0.. within the box
    std::uint16_t device = 0;  ///< its vendor's number of the chip (PCI device ID); 0 = not known
    bool sharp = false;        ///< has an aggregation node
};

struct hca {
    guid id = 0;                ///< node GUID
    std::string name;           ///< node description
    std::string device;         ///< what the description calls it: "mlx5_7"; empty when it does not
    std::uint32_t host = none;  ///< index into hosts; none for what placement leaves out
    std::uint16_t rail = 0;     ///< 0..; of its leaf, the same all over the fabric
    std::uint32_t leaf = none;  ///< index into switches: the box where there are planes
    std::uint16_t leaf_port = 0;
    std::uint32_t lid = 0;    ///< of its first port; 0 = not known
    std::uint8_t planes = 0;  ///< ports that lead to a switch: 1, or one for each plane
    link_rate rate;           ///< of one port
    float confidence = 1;     ///< that it belongs to its host: 1 when its own name says so
};

/// One end of a link: a port of a switch or an HCA.
struct port_ref {
    node_kind kind = node_kind::switch_node;
    std::uint32_t index = none;  ///< into switches or hcas, as kind says
    std::uint16_t port = 0;
    bool operator==(const port_ref&) const = default;
};

struct link {
    port_ref a, b;  ///< the end with the smaller (GUID, port) first
    link_rate rate;
    /// It is up, and its error counters say that it should not be trusted; see health.hpp.
    bool bad = false;
    /// Somebody wants new jobs kept off it; see avoid.hpp. Not in the snapshot.
    bool avoid = false;
};

/// It is up, and nothing should rely on it.
inline bool is_unsound(const link& l) { return l.bad || l.avoid; }

struct host {
    std::string name;
    std::uint32_t leaf_group = none;
    double confidence = 1.0;          ///< share of its rails that lead to that group
    std::vector<std::uint32_t> hcas;  ///< by rail
    std::uint16_t rails = 0;          ///< of its HCAs, those with a link to a switch
    /// Of all these links together at the rate of the slowest of them: a job runs no faster. 0 = not told.
    /// Not in the snapshot.
    double gbps = 0;
    /// One of these links is unsound, or slower than most of its leaf group's, or the group lacks a leaf that
    /// others of its kind have. Not in the snapshot.
    bool slow = false;
    std::string nvlink_domain;  ///< by the site file or GPUs' agents; empty = only the host itself
    std::vector<std::string> failure_domains;  ///< "rack=r12", "pdu=a", as the site file has them
};

/// The leaves, one per rail, that serve the same hosts (a "scalable unit" of a rail-optimised fabric).
struct leaf_group {
    std::string id;                     ///< "g1", "g2", ...; stays while the group can be recognised
    std::vector<std::uint32_t> leaves;  ///< index into switches, by rail
    std::vector<std::uint16_t> rails;   ///< of each of the leaves; without a number where a leaf is missing
    std::vector<std::uint32_t> hosts;   ///< ascending
    std::uint32_t spine_group = 0;      ///< groups under the same spines have the same number
    std::uint32_t island = 0;           ///< groups that no link connects have different ones
    double alignment = 0;  ///< share of its HCAs on their host's usual leaf port; 0 = cannot be told
    /// A link that leads up from one of its leaves is unsound: what its hosts send over spines may meet it.
    /// Not in the snapshot.
    bool thin = false;
};

/// A group that an older snapshot had: its id comes back with its switches, and goes to no other group.
struct gone_group {
    std::string id;
    std::vector<guid> leaves;
};

/// The rail of the leaf at that position: another number where the group lacks a leaf before it.
inline std::size_t rail_at(const leaf_group& g, std::size_t leaf) {
    return leaf < g.rails.size() ? g.rails[leaf] : leaf;
}

struct exclusion {
    guid id = 0;
    std::string name;
    std::string kind;  ///< sharp, ufm, storage, dpu, no-lid, router or unattributed
    std::string why;   ///< the evidence
};

/// A subnet manager, as the tools that ask for them tell of it.
struct subnet_manager {
    enum class role : std::uint8_t { inactive, discovering, standby, master };  ///< IBTA: SMInfo:SMState
    guid id = 0;                                                                ///< of its node or port
    std::uint32_t lid = 0;                                                      ///< 0 = not told
    std::string name;  ///< description of its node; empty where that is not known
    role state = role::inactive;
    std::uint8_t priority = 0;  ///< 0 to 15; the highest becomes master
};

/// A link between sites that no fabric tool sees.
struct wan_link {
    std::uint32_t a = 0, b = 0;  ///< islands
    double gbps = 0;
};

struct defect {
    std::string kind;
    std::vector<std::string> objects;
    std::string evidence;
    double confidence = 1.0;
    /// What it is known by, whatever the names: GUIDs, and "GUID port N" of each port that lacks its cable.
    std::vector<std::string> where = {};
};

/// What is told and is no fault: a leaf whose hosts are all off.
inline bool is_notice(const defect& d) { return d.kind == "off"; }

/// What the source of a fabric does not tell: nothing is concluded from it, neither a defect nor a figure.
struct untold_facts {
    bool cables = false;   ///< ports, and how many cables join two switches: a tree tells who is below whom
    bool rails = false;    ///< how many HCAs a host has, and which of them are of one rail
    bool devices = false;  ///< what hosts call their RDMA devices
    bool rates = false;    ///< of links
    bool upper = false;    ///< which switches stand above those that it names
    bool guids = false;    ///< the ids of nodes are made of their names
    bool operator==(const untold_facts&) const = default;
};
/// In words, for people: "cables and ports", "rails".
std::vector<std::string> words_of(const untold_facts& u);

struct fabric {
    std::uint32_t source_crc = 0;       ///< CRC-32C of the dump it was built from
    std::int64_t created_unix_s = 0;    ///< when, as given by the builder's caller
    std::vector<switch_node> switches;  ///< by GUID
    std::vector<hca> hcas;              ///< by GUID
    std::vector<link> links;
    std::vector<host> hosts;  ///< by name
    std::vector<leaf_group> leaf_groups;
    std::vector<exclusion> excluded;
    std::vector<defect> defects;
    std::vector<wan_link> wan;
    std::vector<gone_group> gone_groups;
    std::vector<subnet_manager> managers;  ///< empty = nobody looked
    untold_facts untold;
    /// What a byte costs placement, by the tier where its ends meet. Follows from the links, see
    /// capacity.hpp.
    by_tier<double> tier_cost{0, 0, 1, 2, 64};
};

/// Index of the host called `name`, or none. Binary search.
std::uint32_t find_host(const fabric& f, const std::string& name);

}  // namespace banyan::topo
