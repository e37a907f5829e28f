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

    /// A connected port of a node, as that end sees it; of the peer only GUID and port.
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
};

}  // namespace banyan::topo
