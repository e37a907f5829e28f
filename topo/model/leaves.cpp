// SPDX-License-Identifier: BSD-3-Clause
//
// Which switches are leaves, by the hosts on them: those that no others with hosts contradict.
#include <algorithm>
#include <array>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/switch_graph.hpp"
#include "topo/model/union_find.hpp"

namespace banyan::topo::build {
namespace {

class leaf_finder {
  public:
    leaf_finder(const fabric& f, const switch_graph& g, const std::vector<hca_name>& names)
        : f_(f),
          g_(g),
          names_(names),
          leaf_(f.switches.size()),
          contradictions_(f.switches.size()),
          compare_(g) {}

    std::vector<bool> find() {
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) leaf_[i] = g_.hosts[i] > 0;
        leaves_by_signs(f_, g_, names_, leaf_);
        by_contradictions();
        drop_hosts_above();
        return leaf_;
    }

  private:
    std::vector<std::uint32_t> contradicting(std::uint32_t sw) const {
        std::vector<std::uint32_t> out;
        for (const auto p : g_.peers[sw])
            if (leaf_[p]) out.push_back(p);
        return out;
    }

    /// Leaves are not joined to leaves. Where two switches with hosts are, the one above is it that is joined
    /// to many which are not joined to each other, and has fewer hosts than they. What remains (two leaves
    /// back to back, a mesh of leaves) stays.
    void by_contradictions() {
        std::vector<std::pair<double, std::uint32_t>> order;  // contradictions a host, most first
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) {
            if (!leaf_[i]) continue;
            const auto n = contradictions_[i] = contradicting(i).size();
            if (n >= 2) order.emplace_back(-static_cast<double>(n) / static_cast<double>(g_.hosts[i]), i);
        }
        std::sort(order.begin(), order.end());
        for (const auto& [key, sw] : order) {
            const auto others = contradicting(sw);
            if (!stands_above(sw, others)) continue;
            leaf_[sw] = false;
            for (const auto o : others) --contradictions_[o];
        }
    }

    /// Whether it and the two on either side have hosts, and links to two of those only: a ring or a chain of
    /// leaves, one of which may have few hosts. Of four the two opposite may be spines, if both have few.
    bool in_ring(std::uint32_t sw) const {
        const auto& peers = g_.peers[sw];
        if (peers.size() != 2) return false;
        std::array<std::uint32_t, 2> next{};
        for (std::size_t i = 0; i < 2; ++i) {
            const auto& its = g_.peers[peers[i]];
            if (its.size() != 2) return false;
            next[i] = its[0] == sw ? its[1] : its[0];
            if (!leaf_[peers[i]] || !leaf_[next[i]]) return false;
        }
        return next[0] != next[1] || 2 * g_.hosts[next[0]] > std::min(g_.hosts[peers[0]], g_.hosts[peers[1]]);
    }

    bool stands_above(std::uint32_t sw, std::vector<std::uint32_t> others) const {
        if (others.size() < 2 || in_ring(sw)) return false;
        std::vector<std::size_t> hosts;
        std::size_t peers = 0;
        for (const auto o : others) {
            hosts.push_back(g_.hosts[o]);
            peers += contradictions_[o];
        }
        // Than half of them at least: in a ring one neighbour with many shows nothing.
        const auto middle = hosts.begin() + static_cast<std::ptrdiff_t>((hosts.size() - 1) / 2);
        std::nth_element(hosts.begin(), middle, hosts.end());
        const bool fewer_hosts = 2 * g_.hosts[sw] <= *middle;
        const bool more_peers = others.size() * others.size() >= 2 * peers;
        return (fewer_hosts || more_peers) && mostly_apart(g_, std::move(others));
    }

    /// Hosts on a core contradict no leaf: its peers are spines. But they are spines of several blocks, of
    /// which every leaf has one.
    void drop_hosts_above() {
        std::vector<std::size_t> hosts;
        for (std::uint32_t i = 0; i < leaf_.size(); ++i)
            if (leaf_[i]) hosts.push_back(g_.hosts[i]);
        if (hosts.empty()) return;
        const auto middle = hosts.begin() + static_cast<std::ptrdiff_t>(hosts.size() / 2);
        std::nth_element(hosts.begin(), middle, hosts.end());
        const auto strong = [&](std::uint32_t i) { return leaf_[i] && 2 * g_.hosts[i] > *middle; };
        std::vector<std::uint32_t> above;
        std::size_t leaves = 0, cards = 0;
        for (std::uint32_t i = 0; i < leaf_.size(); ++i)
            if (strong(i)) ++leaves, cards += is_line_card(f_.switches[i].name);
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) {
            if (!leaf_[i] || strong(i) || in_ring(i)) continue;
            // Below it all may be off, so that only its name is left to go by.
            const auto& name = f_.switches[i].name;
            if (is_line_card(name) ? 2 * cards < leaves : role_in_name(name) == switch_role::upper) {
                above.push_back(i);
                continue;
            }
            const auto like = compare_.nearest(i, g_.peers[i], strong);
            if (like.shared > 0 && 4 * like.shared < 3 * g_.peers[i].size()) above.push_back(i);
        }
        for (const auto i : above) leaf_[i] = false;
    }

    const fabric& f_;
    const switch_graph& g_;
    const std::vector<hca_name>& names_;
    std::vector<bool> leaf_;
    std::vector<std::size_t> contradictions_;  ///< by switch with hosts: its peers with hosts
    comparison compare_;
};

}  // namespace

switch_graph::switch_graph(const fabric& f, const std::vector<hca_name>& names)
    : peers(f.switches.size()), hosts(f.switches.size()), used(f.switches.size()) {
    for (const auto& l : f.links) {
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node) {
            peers[l.a.index].push_back(l.b.index);
            peers[l.b.index].push_back(l.a.index);
            continue;
        }
        const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
        if (sw.kind != node_kind::switch_node) continue;
        const auto& name = names[hca.index];
        if (name.kind == hca_name::trust::aggregation) continue;
        used[sw.index] = true;
        // What serves the fabric from any switch makes no leaf.
        hosts[sw.index] += !is_manager_name(name.host);
    }
    for (auto& list : peers) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    // A fabric of managers alone.
    if (std::all_of(hosts.begin(), hosts.end(), [](auto n) { return n == 0; }))
        hosts.assign(used.begin(), used.end());
}

std::vector<std::uint32_t> connected_switches(const fabric& f) {
    union_find sets(f.switches.size());
    for (std::uint32_t i = 0; i < f.switches.size(); ++i)
        if (f.switches[i].box < f.switches.size()) sets.join(i, f.switches[i].box);
    for (const auto& l : f.links)
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node)
            sets.join(l.a.index, l.b.index);
    return sets.smallest();
}

std::vector<bool> leaves_by_hosts(const fabric& f, const switch_graph& g,
                                  const std::vector<hca_name>& names) {
    return leaf_finder(f, g, names).find();
}

}  // namespace banyan::topo::build
