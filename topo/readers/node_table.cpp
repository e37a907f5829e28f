// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/node_table.hpp"

#include <algorithm>
#include <tuple>

namespace banyan::topo {

std::uint32_t node_table::node(guid id, std::uint32_t line) {
    const auto [at, fresh] = known_.try_emplace(id, static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) {
        dump_node n;
        n.id = id;
        n.line = line;
        nodes_.push_back(n);
    }
    return at->second;
}

std::uint32_t node_table::find(guid id) const {
    const auto at = known_.find(id);
    return at == known_.end() ? none : at->second;
}

void node_table::join_ports(const std::vector<own_port>& own) {
    // Of one device they are consecutive, or nearly: the vendor gives a device a range of GUIDs.
    constexpr guid farthest = 0x40;
    auto all = own;
    std::erase_if(all, [&](const auto& p) { return nodes_[p.node].kind != node_kind::hca; });
    const auto key = [&](const own_port& p) {
        const auto& n = nodes_[p.node];
        return std::tuple(n.name, n.id, p.port);
    };
    std::sort(all.begin(), all.end(), [&](const auto& x, const auto& y) { return key(x) < key(y); });
    joined_.resize(nodes_.size());
    for (std::uint32_t i = 0; i < joined_.size(); ++i) joined_[i] = i;
    for (std::size_t i = 1, first = 0; i < all.size(); ++i) {
        const auto &before = all[i - 1], &p = all[i];
        auto &device = nodes_[all[first].node], &n = nodes_[p.node];
        const bool same = p.node == before.node || (n.name == device.name && p.port > before.port &&
                                                    n.id - nodes_[before.node].id <= farthest);
        if (!same) {
            first = i;
            continue;
        }
        joined_[p.node] = all[first].node;
        known_[n.id] = all[first].node;
        device.ports = std::max(device.ports, n.ports);
    }
}

void node_table::add_link(std::uint32_t a, std::uint16_t a_port, std::uint32_t b, std::uint16_t b_port,
                          link_rate rate, std::uint32_t a_lid, std::uint32_t b_lid) {
    dump_port p;
    p.rate = rate;
    p.port = a_port;
    p.lid = a_lid;
    p.peer = nodes_[b].id;
    p.peer_port = b_port;
    add(a, p);
    p.port = b_port;
    p.lid = b_lid;
    p.peer = nodes_[a].id;
    p.peer_port = a_port;
    add(b, p);
}

void node_table::finish() {
    if (!joined_.empty())
        for (auto& p : ports_) p.node = joined_[p.node];
    const auto key = [](const owned_port& p) {
        return std::tuple(p.node, p.port.port, p.port.peer, p.port.peer_port);
    };
    std::stable_sort(ports_.begin(), ports_.end(),
                     [&](const auto& x, const auto& y) { return key(x) < key(y); });
    ports_.erase(std::unique(ports_.begin(), ports_.end(),
                             [&](const auto& x, const auto& y) { return key(x) == key(y); }),
                 ports_.end());
    out_.nodes.reserve(nodes_.size());
    out_.ports.reserve(ports_.size());
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
        if (!joined_.empty() && joined_[i] != i) continue;
        auto n = nodes_[i];
        n.first_port = static_cast<std::uint32_t>(out_.ports.size());
        for (; at < ports_.size() && ports_[at].node == i; ++at) {
            auto p = ports_[at].port;
            if (const auto peer = find(p.peer); peer != none) {
                p.peer = nodes_[peer].id;
                p.peer_kind = nodes_[peer].kind;
                p.peer_name = nodes_[peer].name;
                p.peer_lid = nodes_[peer].lid;
            }
            if (n.kind == node_kind::switch_node)
                p.lid = 0;
            else if (n.lid == 0)
                n.lid = p.lid;
            n.ports = std::max(n.ports, p.port);
            out_.ports.push_back(p);
        }
        n.port_count = static_cast<std::uint32_t>(out_.ports.size()) - n.first_port;
        out_.nodes.push_back(n);
    }
}

}  // namespace banyan::topo
