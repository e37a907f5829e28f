// SPDX-License-Identifier: BSD-3-Clause
//
// Writes dumps for tests: nodes, then cables between their ports, then the text in ibnetdiscover's form.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/reader.hpp>

namespace banyan::topo::test {

class dump_writer {
  public:
    guid add_switch(const std::string& name);
    guid add_hca(const std::string& name);
    guid add_router(const std::string& name);
    /// A cable; both ends list it.
    void link(guid a, unsigned a_port, guid b, unsigned b_port, const std::string& rate = "4xNDR");
    /// Drops what leads from this port, on this side only.
    void forget(guid node, unsigned port);
    /// Drops its record.
    void remove(guid node);

    std::string text() const;
    fabric model(const build_options& options = {}) const;

  private:
    struct end {
        guid peer;
        unsigned peer_port;
        std::string rate;
    };
    struct node {
        char kind;
        std::string name;
        std::map<unsigned, end> ports;
    };
    guid add(char kind, const std::string& name);

    std::map<guid, node> nodes_;
};

/// `groups` leaf groups of `hosts` hosts with `rails` HCAs, `spines` spines; host gHnNN is on port NN of each
/// of its leaves. Leaves are "leaf-G-R", spines "spine-S", HCAs "gGnNN mlx5_R".
struct rail_fabric : dump_writer {
    rail_fabric(unsigned groups, unsigned hosts, unsigned rails, unsigned spines);
    std::vector<std::vector<guid>> leaves;  ///< [group][rail]
    std::vector<guid> spines;
    std::vector<std::vector<std::vector<guid>>> hcas;  ///< [group][host][rail]
};

}  // namespace banyan::topo::test
