// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/missing_ports.hpp"

#include <algorithm>
#include <tuple>

namespace banyan::topo::build {

missing_ports::missing_ports(const fabric& f) : f_(f) {
    for (const auto& l : f.links) {
        for (const auto& e : {l.a, l.b})
            if (e.kind == node_kind::switch_node) taken_.emplace_back(e.index, e.port);
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        ends_.push_back({l.a.index, l.b.index, l.a.port, l.b.port});
        ends_.push_back({l.b.index, l.a.index, l.b.port, l.a.port});
    }
    std::sort(taken_.begin(), taken_.end());
    std::sort(ends_.begin(), ends_.end(), [](const end& x, const end& y) {
        return std::tuple(x.sw, x.peer, x.port) < std::tuple(y.sw, y.peer, y.port);
    });
}

std::span<const missing_ports::end> missing_ports::ends_of(std::uint32_t sw) const {
    const auto [first, last] = std::equal_range(ends_.begin(), ends_.end(), end{sw, 0, 0, 0},
                                                [](auto& a, auto& b) { return a.sw < b.sw; });
    return {first, last};
}

bool missing_ports::leads_to(std::uint32_t sw, std::uint16_t port, std::uint32_t peer) const {
    const auto key = std::tuple(sw, peer, port);
    const auto at = std::partition_point(
        ends_.begin(), ends_.end(), [&](const end& e) { return std::tuple(e.sw, e.peer, e.port) < key; });
    return at != ends_.end() && std::tuple(at->sw, at->peer, at->port) == key;
}

bool missing_ports::dark(std::uint32_t sw, std::uint16_t port) const {
    return !std::binary_search(taken_.begin(), taken_.end(), std::pair(sw, port));
}

const missing_ports::ports& missing_ports::usual_at_peers(std::uint32_t sw, unsigned level) {
    const auto [at, fresh] = usual_.try_emplace({sw, level});
    if (!fresh) return at->second;
    std::map<std::uint16_t, std::size_t> votes;
    std::size_t peers = 0;
    std::uint32_t last = none;
    for (const auto& e : ends_of(sw)) {
        if (f_.switches[e.peer].level != level) continue;
        peers += e.peer != last;
        last = e.peer;
        ++votes[e.peer_port];
    }
    for (const auto& [port, n] : votes)
        if (peers >= 2 && 2 * n > peers) at->second.push_back(port);
    return at->second;
}

missing_ports::ports missing_ports::free_ones(std::uint32_t sw, const ports& candidates,
                                              std::uint32_t missing) const {
    ports out;
    for (const auto port : candidates)
        if (dark(sw, port)) out.push_back(port);
    if (out.size() != missing) out.clear();
    return out;
}

std::vector<missing_cable> missing_ports::between(std::uint32_t low, std::uint32_t high,
                                                  std::uint32_t missing) {
    const auto at_low = free_ones(low, usual_at_peers(high, f_.switches[low].level), missing);
    const auto at_high = free_ones(high, usual_at_peers(low, f_.switches[high].level), missing);
    std::vector<missing_cable> out(missing);
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!at_low.empty()) out[i].low_port = at_low[i];
        if (!at_high.empty()) out[i].high_port = at_high[i];
    }
    return out;
}

}  // namespace banyan::topo::build
