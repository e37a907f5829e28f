// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of build_fabric, in their order. Each reads what the earlier ones filled in.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/reader.hpp>
#include <banyan/topo/switch_names.hpp>

#include "topo/model/hca_names.hpp"

namespace banyan::topo::build {

/// Where a node of the dump went: an index into switches or hcas; none for routers and doubled records.
struct node_place {
    node_kind kind = node_kind::router;
    std::uint32_t index = none;
};

/// What a port answers to that has been given no LID: the permissive one (IBTA 4.1.3).
constexpr std::uint32_t no_lid = 0xffff;

/// Defects of one kind that are told one by one: more than anybody works through. A kind that covers more of
/// the fabric is told once; a dump can claim millions.
constexpr std::size_t most_of_kind = 10'000;

/// What the steps share beside the fabric itself. Vectors "by HCA" and "by host" go with out.hcas, out.hosts.
struct state {
    const dump& source;
    const build_options& options;
    fabric& out;

    std::vector<dump_node> nodes;          ///< the dump's, then one for each peer without a record
    std::size_t with_record = 0;           ///< how many of them are the dump's
    std::vector<node_place> place;         ///< by node
    std::vector<std::uint32_t> peer_node;  ///< by port of the dump: index into nodes

    std::vector<hca_name> hca_names;                 ///< by HCA: what its description says
    std::vector<std::string_view> host_name_of_hca;  ///< by HCA; empty = its name tells no host
    /// By HCA: its number, comparable all over the fabric (see device_numbers.cpp); none when unknown.
    std::vector<std::uint32_t> device_of_hca;
    std::vector<guid> system_of_hca;         ///< by HCA
    std::vector<std::uint16_t> chip_of_hca;  ///< by HCA: as switch_node::device
    std::vector<bool> without_lid;           ///< by HCA: its port is up, and has no LID
    std::vector<bool> doubtful_host;  ///< by HCA: another HCA has its name, and nothing tells them apart

    std::vector<float> told_by_guid;  ///< by HCA: how sure its GUID makes its number; 0 = its name tells it

    switch_names names;

    /// By switch: how sure it is that one without hosts stands where it stands; 0 for the others.
    std::vector<float> off_confidence;

    /// How many were found of each kind, also of those that are not told one by one.
    std::map<std::string, std::size_t, std::less<>> found;

    /// Whether there are so many of the kind that one more is only counted; then it is. Spares making its
    /// words.
    bool counts_only(std::string_view kind) {
        const auto at = found.find(kind);
        if (at == found.end() || at->second < most_of_kind) return false;
        ++at->second;
        return true;
    }
    void report(std::string kind, std::vector<std::string> objects, std::string evidence, double confidence,
                std::vector<std::string> where = {}) {
        if (counts_only(kind)) return;
        ++found[kind];
        out.defects.push_back(
            {std::move(kind), std::move(objects), std::move(evidence), confidence, std::move(where)});
    }
};

/// A kind of which more were found than are told one by one becomes one defect: how many, and samples.
void tell_once(state& s);  // many_defects.cpp

void take_nodes(state& s);    // nodes.cpp: switches and HCAs by GUID; routers aside
void take_links(state& s);    // links.cpp: every cable once, with both ends
void find_boxes(state& s);    // boxes.cpp: the planes of one box; aggregation nodes
void find_levels(state& s);   // levels.cpp: leaf, spine, core
void take_hosts(state& s);    // hosts.cpp: HCAs to hosts by name and evidence; what is no compute host aside
void group_leaves(state& s);  // groups.cpp: leaf groups, rails, spine groups, islands
void take_site(state& s);     // site.cpp: what the site file says
void find_host_defects(state& s);    // host_defects.cpp: rails, cables and names of hosts
void find_missing_rails(state& s);   // rail_defects.cpp: hosts that lack what their group has
void find_doubled_leaves(state& s);  // rail_defects.cpp: two HCAs of a host on one leaf
void find_switch_defects(state& s);  // switch_defects.cpp: leaves, uplinks and names of switches
void find_missing_links(state& s);   // uplink_defects.cpp: between two levels of switches
void find_idle_leaves(state& s);     // switch_defects.cpp: leaves without any host
void find_slow_links(state& s);      // link_defects.cpp
void find_bad_lids(state& s);        // lids.cpp: given twice, or not at all
void find_missing_planes(state& s);  // plane_defects.cpp: HCAs and chips

/// Share of those that agree; below it ports or device numbers show nothing.
constexpr double least_agreement = 0.75;

/// By group: how many leaves it should have, going by the groups of the same kind of hosts all over the
/// fabric; what it has where they do not tell.
std::vector<std::size_t> expected_leaves(const fabric& f);

/// What a switch goes by; see switch_names.
std::string label(const state& s, std::uint32_t sw);

std::string hex(guid id);                          ///< "0x000a..."
std::string port_id(guid id, std::uint16_t port);  ///< "0x000a... port N"
std::string port_id(const fabric& f, const port_ref& p);
/// "<description> port N"
std::string end_name(const state& s, const port_ref& p);
/// "gpu#-ib#" of "gpu12-ib3": hosts of one kind have the same.
std::string name_pattern(std::string_view name);

}  // namespace banyan::topo::build
