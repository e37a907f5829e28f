// SPDX-License-Identifier: BSD-3-Clause
//
// A box of several planes shows as several switches, "...:Q3400_RA/U1" to "/U4". One of them stands for all,
// so that a leaf is a box. Also what hangs on switches: aggregation nodes, and each HCA's leaf.
#include <map>
#include <set>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

struct unit_name {
    std::string_view box;
    std::uint8_t unit = 0;  ///< N of "/UN"; 0 = none
};

unit_name split_unit(std::string_view name) {
    const auto at = name.rfind("/U");
    if (at == std::string_view::npos || name.size() != at + 3) return {};
    const char digit = name[at + 2];
    if (digit < '1' || digit > '9') return {};
    return {name.substr(0, at), static_cast<std::uint8_t>(digit - '0')};
}

/// A director's card: "core1/L03/U2".
bool is_card(std::string_view box) {
    const auto at = box.rfind('/');
    return at != std::string_view::npos && at + 2 < box.size() && box[at + 2] >= '0' && box[at + 2] <= '9';
}

/// Each plane is a tree of its own: its units share no neighbour, and none is joined to another. Two ASICs of
/// one card are switches like any others, whatever they are called.
class plane_evidence {
  public:
    explicit plane_evidence(const fabric& f) : peers_(f.switches.size()) {
        for (const auto& l : f.links) {
            if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
            peers_[l.a.index].insert(l.b.index);
            peers_[l.b.index].insert(l.a.index);
        }
    }
    bool apart(const std::map<std::uint8_t, std::uint32_t>& units) const {
        std::map<std::uint32_t, std::size_t> seen;
        std::size_t all = 0, shared = 0;
        for (const auto& [unit, sw] : units)
            for (const auto p : peers_[sw]) {
                ++all;
                shared += seen[p]++ > 0;
                for (const auto& [other, of_box] : units)
                    if (p == of_box) return false;
            }
        return 8 * shared <= all;  // a crossed cable or two
    }

  private:
    std::vector<std::set<std::uint32_t>> peers_;
};

void join_planes(fabric& f) {
    // Almost every switch is "/U1" alone; only those with a higher unit make a box.
    std::set<std::string_view> boxes;
    for (const auto& sw : f.switches)
        if (const auto u = split_unit(sw.name); u.unit > 1 && !is_card(u.box)) boxes.insert(u.box);
    if (boxes.empty()) return;
    std::map<std::string_view, std::map<std::uint8_t, std::uint32_t>> units;
    std::set<std::string_view> doubled;  // two switches with the same name are no box
    for (std::uint32_t i = 0; i < f.switches.size(); ++i)
        if (const auto u = split_unit(f.switches[i].name); boxes.contains(u.box))
            if (!units[u.box].emplace(u.unit, i).second) doubled.insert(u.box);
    const plane_evidence evidence(f);
    for (const auto& [box, members] : units) {
        if (doubled.contains(box) || !evidence.apart(members)) continue;
        for (const auto& [unit, i] : members) {
            f.switches[i].box = members.begin()->second;
            f.switches[i].plane = static_cast<std::uint8_t>(unit - 1);
        }
    }
}

/// An HCA of several ports counts where its first plane is, or its first port where they lead to several
/// boxes.
void take_hca_end(fabric& f, std::vector<std::uint16_t>& first_port, const port_ref& hca_end,
                  const port_ref& switch_end, const link_rate& rate) {
    auto& h = f.hcas[hca_end.index];
    ++h.planes;
    const auto& sw = f.switches[switch_end.index];
    auto& first = first_port[hca_end.index];
    if (h.leaf != none && (h.leaf == sw.box ? sw.plane > 0 : hca_end.port > first)) return;
    first = hca_end.port;
    h.leaf = sw.box;
    h.leaf_port = switch_end.port;
    h.rate = rate;
}

}  // namespace

void find_boxes(state& s) {
    auto& f = s.out;
    if (!f.untold.cables) join_planes(f);
    std::vector<std::uint16_t> first_port(f.hcas.size());
    for (const auto& l : f.links) {
        if (l.a.kind == node_kind::hca && l.b.kind == node_kind::switch_node)
            take_hca_end(f, first_port, l.a, l.b, l.rate);
        if (l.b.kind == node_kind::hca && l.a.kind == node_kind::switch_node)
            take_hca_end(f, first_port, l.b, l.a, l.rate);
    }
}

}  // namespace banyan::topo::build
