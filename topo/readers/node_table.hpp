// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes and ports of a text that does not list each node with its ports: joined by GUID while it is read.
#pragma once

#include <vector>

#include <banyan/topo/reader.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

namespace banyan::topo {

class node_table {
  public:
    explicit node_table(dump& out) : out_(out) {}

    /// Index of the node with that GUID; `line` is where it stood first.
    std::uint32_t node(guid id, std::uint32_t line);
    /// None where no such node was seen.
    std::uint32_t find(guid id) const;
    dump_node& operator[](std::uint32_t index) { return nodes_[index]; }
    std::size_t size() const { return nodes_.size(); }

    /// For a text with the GUID of each port of an HCA, where another has the HCA's: nodes of one description
    /// that have different ports and GUIDs next to each other are one, that of the lowest GUID. `own` has
    /// every port that the text lists, also one without a link.
    struct own_port {
        std::uint32_t node;
        std::uint16_t port;
    };
    void join_ports(const std::vector<own_port>& own);

    /// A connected port of a node, as that end sees it; of the peer what is known where it has no record.
    void add(std::uint32_t node, const dump_port& p) { ports_.push_back({node, p}); }
    /// A link that the text has once: both ends get it.
    void add_link(std::uint32_t a, std::uint16_t a_port, std::uint32_t b, std::uint16_t b_port,
                  link_rate rate, std::uint32_t a_lid = 0, std::uint32_t b_lid = 0);

    /// Fills the dump: nodes in the order of the text, their ports ascending, each link once at each end.
    void finish();

  private:
    struct owned_port {
        std::uint32_t node;
        dump_port port;
    };
    dump& out_;
    std::vector<dump_node> nodes_;
    std::vector<owned_port> ports_;
    boost::unordered_flat_map<guid, std::uint32_t> known_;
    std::vector<std::uint32_t> joined_;  ///< by node: which it is a port of; empty where none was joined
};

}  // namespace banyan::topo
