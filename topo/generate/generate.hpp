// SPDX-License-Identifier: BSD-3-Clause
//
// Synthetic fabrics in ibnetdiscover's own form, which is also what ibsim loads, with known defects in them
// and the truth beside it. For tests, benchmarks and the development cluster; no daemon or plugin links this.
// It shares nothing with the reader and the model but the plain types of fabric.hpp, so that they cannot err
// alike.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"
#include "topo/generate/oddities.hpp"

namespace banyan::topo::generate {

enum class defect_kind : std::uint8_t {
    missing_leaf,      ///< of the leaf groups
    asymmetric_spine,  ///< of the spines
    missing_uplink,    ///< of the switches below the topmost tier
    swapped_cables,    ///< of the hosts
    foreign_leaf,      ///< of the hosts
    missing_rail,      ///< of the hosts
    duplicate_name,    ///< of the hosts
    no_record,         ///< of the compute HCAs
    duplicate_guid,    ///< of the compute HCAs
    one_way_link,      ///< of the links
    narrow_link,       ///< of the links
    slow_link,         ///< of the links
    factory_name,      ///< of the compute HCAs
    missing_switch,    ///< from here on by oddities::lost, not by rate
    missing_plane,     ///< of an HCA, or of a leaf's box
    no_lid,            ///< of hosts' ports
};
constexpr std::size_t defect_kinds = 13;  ///< those planted by rate
/// "missing-leaf" ...
std::string_view name_of(defect_kind kind);
/// The share of the objects named above that are to have the defect, 0 to 0.5; above 0 it is one at least.
using defect_rates = std::array<double, defect_kinds>;

/// What to build. Zero means "as the rest implies" where a default says so.
struct options {
    std::uint32_t hosts = 64, group_size = 32, rails = 8;
    std::uint32_t levels = 2;            ///< 2: leaves and spines; 3: spine groups of those under cores
    std::uint32_t spine_group_size = 4;  ///< leaf groups of a spine group, with three levels
    std::uint32_t radix = 64;            ///< ports of a switch; more only where the shape needs them
    double oversubscription = 1;         ///< host links of a leaf over its uplinks
    std::uint32_t spines = 0,
                  links = 0;   ///< spines (of a spine group); parallel links from each leaf to each of them
    std::uint32_t cores = 0;   ///< all of them; a multiple of a spine group's spines
    std::uint32_t planes = 1;  ///< switches of one box, and ports of an HCA
    bool sharp = false;        ///< an aggregation node on each switch
    std::uint32_t ufm_hosts = 0, storage_servers = 0;
    bool storage_rail = false;   ///< one more HCA a host, on leaves of their own
    std::string rate = "4xHDR";  ///< of every link
    std::string host_prefix = "n", sm_host = "sm01";
    std::uint32_t host_digits = 0;  ///< 0: two, or as many as the highest number has
    std::uint32_t rack_size = 0;    ///< not 0: host names are rack and tray, "r01-n01"
    double racks_off = 0;          ///< share of the racks (leaf groups without rack_size) whose hosts are off
    std::uint32_t gateways = 0;    ///< hosts of one HCA each, on the spines in turn
    std::uint32_t core_hosts = 0;  ///< the same on the cores
    /// Dragonfly+: spine groups of two levels, each pair of them joined by global links between their spines.
    bool dragonfly = false;
    std::uint32_t global_links = 0;  ///< of each pair; 0: as many as a spine group has spines
    bool rail_only = false;     ///< spines of their own for each rail: no way between rails but in a host
    std::uint32_t routers = 0;  ///< on the spines in turn
    /// Names of line and spine cards: leaves and spines are those of a director for each spine group; with
    /// three levels the spines and cores at one position are.
    bool directors = false;
    double mixed_names = 0;  ///< share of switches never named, and of hosts that name their HCAs otherwise
    bool shuffle = false;    ///< GUIDs and records in random order, as bought and as discovered
    oddities odd;
    defect_rates rates{};
    std::uint64_t seed = 1;
};

struct planted_defect {
    defect_kind kind;
    std::vector<std::string> objects;     ///< as fabric.hpp's defect names them
    std::vector<std::string> where = {};  ///< GUIDs, and GUIDs and ports, of switches and links
};

/// A leaf group as cabled. A rail's leaf is a box: one switch name for each plane.
struct true_group {
    std::vector<std::vector<std::string>> leaves;  ///< by rail; empty where the leaf is missing
};

struct true_host {
    std::string name;
    std::uint32_t group = 0;
    /// Whether more HCAs of its own carry its name than of others: else nobody can know it.
    bool named = true;
    bool off = false;              ///< nothing of it is in the dump
    bool unready = false;          ///< its ports have no LID: no job can be there
    bool named_otherwise = false;  ///< its HCAs are not "mlx5_0", "mlx5_1", ...
};

/// A compute HCA that is in the dump.
struct true_hca {
    guid id = 0;
    std::string name;  ///< as the dump has it
    std::uint32_t host = 0;
    /// Of the leaf that its cable leads to, also where that is the wrong one.
    std::uint32_t leaf_group = 0;
    std::uint16_t rail = 0;
};

/// What an HCA is for that no job computes with.
enum class duty : std::uint8_t { service, storage_server, storage_hca, dpu };
std::string_view name_of(duty d);

struct true_other {
    guid id = 0;
    std::string name;
    duty what = duty::service;
    /// Whether who reads the dump can know it; not of hosts that only their names tell from lesser ones.
    bool sure = true;
};

struct true_switch {
    guid id = 0;
    std::uint8_t level = 0;
    bool off = false;  ///< a leaf on which there is nothing
};

struct truth {
    std::vector<planted_defect> defects;
    std::array<std::uint32_t, defect_kinds> asked{};  ///< more than planted where they would have overlapped
    std::vector<true_group> groups;
    std::vector<true_host> hosts;
    std::vector<true_hca> hcas;
    std::vector<true_other> others;  ///< HCAs that are not for compute
    std::vector<true_switch> switches;
    bool tree = true;  ///< not where the leaves are a ring
};

struct generated {
    std::string text;
    truth facts;
};

/// The same options give the same text. An error names the option and what it may be; also a defect that the
/// shape cannot have ("swapped-cables" with one HCA a host).
result<generated> generate(const options& o);

/// Whether the shape can have the defect at all: empty, or why not.
std::string why_impossible(const options& o, defect_kind kind);

/// "swapped-cables=0.05,factory-name=0.1"; kinds that it does not name keep the rate of `others`.
result<defect_rates> parse_rates(std::string_view text, const defect_rates& others = {});

/// One JSON object: seed, defects, groups, hosts, hcas, others.
std::string to_json(const truth& t, const options& o);

}  // namespace banyan::topo::generate
