// SPDX-License-Identifier: BSD-3-Clause
//
// What changed between two states of a fabric. Nodes and ports are joined by GUID, never by name or LID.
#pragma once

#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo {

struct link_end {
    guid id = 0;
    std::uint16_t port = 0;
    std::string node_name;  ///< description of the switch or HCA
    node_kind kind = node_kind::switch_node;

    /// "leaf01 port 3".
    std::string text() const { return node_name + " port " + std::to_string(port); }
};

struct changed_link {
    link_end a, b;
    link_rate before, after;  ///< all zero where the link does not exist
};

struct changed_node {
    guid id = 0;
    std::string name;
    node_kind kind = node_kind::switch_node;
};

/// A port that leads somewhere else than before.
struct moved_link {
    link_end kept;           ///< of the HCA where one end is an HCA's
    link_end before, after;  ///< what it led to, and leads to
};

struct fabric_diff {
    std::vector<changed_link> lost_links, new_links, changed_rates;
    std::vector<moved_link> moved_links;  ///< each of them is among the lost and the new links too
    std::vector<changed_node> lost_nodes, new_nodes;
    bool empty() const {
        return lost_links.empty() && new_links.empty() && changed_rates.empty() && lost_nodes.empty() &&
               new_nodes.empty();
    }
};

/// Links of a lost node are among the lost links too: the caller collapses them where it wants to.
fabric_diff diff(const fabric& before, const fabric& after);

}  // namespace banyan::topo
