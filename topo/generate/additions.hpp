// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of add_oddities share: new switches and HCAs on the next free ports of a drawn fabric.
#pragma once

#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {

class additions {
  public:
    additions(blueprint& bp, dice& random) : b(bp), roll(random), last_(bp.nodes.size()) {
        for (const auto& c : b.cables) {
            last_[c.a] = std::max(last_[c.a], c.a_port);
            last_[c.b] = std::max(last_[c.b], c.b_port);
        }
        // Bought apart from the others, so with GUIDs of their own.
        next_ = 0xb8599f0300000000 + guid{roll.below(1000)} * 0x10000;
    }

    std::uint32_t add_switch(role what, const std::string& name) {
        node n;
        n.id = next_ += 0x40;
        n.what = what;
        n.name = "MF0;" + name + ":MQM9790/U1";
        n.ports = static_cast<std::uint16_t>(b.o.radix);
        return add(std::move(n));
    }
    std::uint32_t add_hca(std::string name, duty serving) {
        node n;
        n.id = next_ += 0x40;
        n.what = role::service;
        n.name = std::move(name);
        n.serving = serving;
        return add(std::move(n));
    }
    /// The lower one first; each on its next free port.
    void join(std::uint32_t low, std::uint32_t high, const speed_rate& rate) {
        join_at(low, high, static_cast<std::uint16_t>(last_[high] + 1), rate);
    }
    /// On a free port of a leaf of the groups, which may be between others.
    void join_leaf(std::uint32_t hca, std::uint32_t leaf) {
        join_at(hca, leaf, take_leaf_port(b, leaf), b.n.rate);
    }

    blueprint& b;
    dice& roll;

  private:
    std::uint32_t add(node n) {
        n.system = n.id;
        b.nodes.push_back(std::move(n));
        last_.push_back(0);
        return static_cast<std::uint32_t>(b.nodes.size() - 1);
    }
    void join_at(std::uint32_t low, std::uint32_t high, std::uint16_t port, const speed_rate& rate) {
        b.cables.push_back({low, high, ++last_[low], port, rate});
        last_[high] = std::max(last_[high], port);
    }

    std::vector<std::uint16_t> last_;  ///< of each node: the highest port in use
    guid next_ = 0;
};

/// "" is the rate of all.
inline speed_rate rate_or(const blueprint& b, const std::string& rate) {
    return rate.empty() ? b.n.rate : parse_rate(rate).value_or(b.n.rate);  // sizes_of has read it
}

void add_shared_storage(additions& to);
void add_service_leaves(additions& to);
void add_dpus(additions& to);
/// Fewer HCAs, lower rates and older switches in the last groups.
void lessen_groups(blueprint& b);
void rename_devices(blueprint& b);
/// Host and device in another order or with another sign between them, of all that has both.
void format_names(blueprint& b);

}  // namespace banyan::topo::generate
