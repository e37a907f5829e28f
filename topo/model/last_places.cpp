// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <set>

#include <banyan/topo/last_places.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

namespace banyan::topo {
namespace {

using node_index = boost::unordered_flat_map<guid, std::uint32_t>;

node_index index_nodes(const dump& d) {
    node_index out;
    out.reserve(d.nodes.size());
    for (std::uint32_t i = 0; i < d.nodes.size(); ++i) out.try_emplace(d.nodes[i].id, i);
    return out;
}

bool is_gone(const node_index& known, const fabric& last, const host& h) {
    return std::none_of(h.hcas.begin(), h.hcas.end(),
                        [&](auto i) { return known.contains(last.hcas[i].id); });
}

/// The ports of a dump by node, so that some can be added.
class port_lists {
  public:
    explicit port_lists(const dump& d) : out_(d), known_(index_nodes(d)) {
        for (const auto& n : d.nodes) {
            const auto ports = d.ports_of(n);
            ports_.emplace_back(ports.begin(), ports.end());
        }
    }

    /// Both ends list a cable. Nothing where the switch is gone, or has something else on the port.
    void add(const hca& h, std::uint16_t port, const switch_node& sw, std::uint16_t sw_port, link_rate rate) {
        const auto at = known_.find(sw.id);
        if (at == known_.end()) return;
        const auto its_node = at->second;  // what is added below moves the index
        auto& there = ports_[its_node];
        if (std::any_of(there.begin(), there.end(), [&](const auto& p) { return p.port == sw_port; })) return;
        there.push_back({.peer = h.id,
                         .peer_name = h.name,
                         .port = sw_port,
                         .peer_port = port,
                         .peer_kind = node_kind::hca,
                         .rate = rate});
        const auto [own, fresh] = known_.try_emplace(h.id, static_cast<std::uint32_t>(out_.nodes.size()));
        if (fresh) {
            out_.nodes.push_back({.id = h.id, .name = h.name, .kind = node_kind::hca});
            ports_.emplace_back();
        }
        out_.nodes[own->second].ports = std::max(out_.nodes[own->second].ports, port);
        ports_[own->second].push_back({.peer = sw.id,
                                       .peer_name = out_.nodes[its_node].name,
                                       .port = port,
                                       .peer_port = sw_port,
                                       .rate = rate});
    }

    dump all() {
        out_.ports.clear();
        for (std::size_t i = 0; i < ports_.size(); ++i) {
            out_.nodes[i].first_port = static_cast<std::uint32_t>(out_.ports.size());
            out_.nodes[i].port_count = static_cast<std::uint32_t>(ports_[i].size());
            out_.ports.insert(out_.ports.end(), ports_[i].begin(), ports_[i].end());
        }
        return std::move(out_);
    }

  private:
    dump out_;
    node_index known_;
    std::vector<std::vector<dump_port>> ports_;  ///< by node
};

}  // namespace

std::vector<std::string> hosts_gone(const dump& d, const fabric& last) {
    const auto known = index_nodes(d);
    std::vector<std::string> out;
    for (const auto& h : last.hosts)
        if (is_gone(known, last, h)) out.push_back(h.name);
    return out;
}

dump with_last_places(const dump& d, const fabric& last, const std::vector<std::string>& hosts) {
    const auto known = index_nodes(d);
    const std::set<std::string_view> wanted(hosts.begin(), hosts.end());
    std::vector<bool> kept(last.hcas.size());
    for (const auto& h : last.hosts)
        if (wanted.contains(h.name) && is_gone(known, last, h))
            for (const auto i : h.hcas) kept[i] = true;
    port_lists ports(d);
    for (const auto& l : last.links) {
        const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
        if (hca.kind == node_kind::hca && kept[hca.index] && sw.kind == node_kind::switch_node)
            ports.add(last.hcas[hca.index], hca.port, last.switches[sw.index], sw.port, l.rate);
    }
    return ports.all();
}

}  // namespace banyan::topo
