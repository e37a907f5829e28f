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
    const auto key = [](const owned_port& p) {
        return std::tuple(p.node, p.port.port, p.port.peer, p.port.peer_port);
    };
    std::stable_sort(ports_.begin(), ports_.end(),
                     [&](const auto& x, const auto& y) { return key(x) < key(y); });
    ports_.erase(std::unique(ports_.begin(), ports_.end(),
                             [&](const auto& x, const auto& y) { return key(x) == key(y); }),
                 ports_.end());
    out_.nodes = std::move(nodes_);
    out_.ports.reserve(ports_.size());
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < out_.nodes.size(); ++i) {
        auto& n = out_.nodes[i];
        n.first_port = static_cast<std::uint32_t>(out_.ports.size());
        for (; at < ports_.size() && ports_[at].node == i; ++at) {
            auto p = ports_[at].port;
            if (const auto peer = find(p.peer); peer != none) {
                p.peer_kind = out_.nodes[peer].kind;
                p.peer_name = out_.nodes[peer].name;
                p.peer_lid = out_.nodes[peer].lid;
            }
            if (n.kind == node_kind::switch_node)
                p.lid = 0;
            else if (n.lid == 0)
                n.lid = p.lid;
            n.ports = std::max(n.ports, p.port);
            out_.ports.push_back(p);
        }
        n.port_count = static_cast<std::uint32_t>(out_.ports.size()) - n.first_port;
    }
}

}  // namespace banyan::topo
