// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of build_fabric, in their order. Each reads what the earlier ones filled in.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <banyan/topo/reader.hpp>

namespace banyan::topo::build {

/// What the steps share beside the fabric itself.
struct state {
    const dump& source;
    const build_options& options;
    fabric& out;
    std::unordered_map<guid, std::uint32_t> switch_of, hca_of;  ///< GUID -> index
    std::vector<std::uint32_t> device_of_hca;                   ///< N of mlx5_N, UINT32_MAX when unknown
    std::vector<guid> system_of_hca;
};

void take_nodes(state& s);    // nodes.cpp: switches and HCAs by GUID; routers and aggregation nodes aside
void take_links(state& s);    // links.cpp: every cable once, with both ends
void name_hosts(state& s);    // hosts.cpp: HCAs to hosts; management hosts aside
void find_levels(state& s);   // levels.cpp: leaf, spine, core
void group_leaves(state& s);  // groups.cpp: leaf groups, rails, spine groups
void find_defects(state& s);  // defects.cpp

}  // namespace banyan::topo::build
