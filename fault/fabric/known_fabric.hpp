// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes and links of a fabric by GUID and port: what counts as the fabric, and what one look at it saw. What
// counts grows by what is added; nothing is taken from it but what somebody says is gone for good. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <banyan/topo/diff.hpp>

#include "common/result.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

class known_fabric {
  public:
    known_fabric() = default;
    explicit known_fabric(const topo::fabric& f);

    /// What this one has, and `seen` lacks or has slower.
    struct difference {
        std::vector<topo::changed_link> lost, slower;
        std::vector<topo::changed_node> gone;
    };
    difference lacking_in(const known_fabric& seen) const;
    /// All links, as lost ones.
    std::vector<topo::changed_link> links() const { return lacking_in({}).lost; }
    std::size_t nodes() const { return nodes_.size(); }
    /// Of an HCA; empty where that is not known.
    std::string host_of(topo::guid hca) const;
    std::size_t hcas_of(const std::string& host) const;

    /// Takes over what `seen` has more, or faster. A port that has a link keeps it, wherever it leads now.
    /// True when something changed.
    bool add(const known_fabric& seen);
    /// What `seen` does not have of the object is gone for good; a link that it has slower is to be so.
    bool forget(const object& gone, const known_fabric& seen);
    /// Whether all of the object is here, a link at the rate that it should have. None: its rate is not
    /// known.
    std::optional<bool> has(const object& o) const;

    std::string text() const;
    static result<known_fabric> read(std::string_view text);

  private:
    using port = std::pair<topo::guid, std::uint16_t>;
    using ends = std::pair<port, port>;  // the smaller first
    struct node {
        std::string name, host;
        topo::node_kind kind = topo::node_kind::switch_node;
        bool operator==(const node&) const = default;
    };
    topo::changed_link told(const ends& at, const topo::link_rate& before,
                            const topo::link_rate& after) const;
    topo::link_end end(const port& at) const;
    void put(const ends& at, const topo::link_rate& rate);
    bool linked(topo::guid id) const;

    std::map<topo::guid, node> nodes_;
    std::map<ends, topo::link_rate> links_;
    std::set<port> ports_;  // all ends of the links
};

}  // namespace banyan::fault
