// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

/// Finds a port of a node, also where the dump has them in another order than ascending.
class port_index {
  public:
    explicit port_index(const state& s) : s_(s), order_(s.with_record) {
        const auto before = [](const dump_port& a, const dump_port& b) { return a.port < b.port; };
        for (std::uint32_t n = 0; n < s.with_record; ++n) {
            const auto ports = s.source.ports_of(s.nodes[n]);
            if (std::is_sorted(ports.begin(), ports.end(), before)) continue;
            order_[n].resize(ports.size());
            std::iota(order_[n].begin(), order_[n].end(), 0u);
            std::sort(order_[n].begin(), order_[n].end(),
                      [&](auto a, auto b) { return ports[a].port < ports[b].port; });
            for (std::size_t i = 1; i < ports.size() && !doubled_; ++i)
                doubled_ = ports[order_[n][i - 1]].port == ports[order_[n][i]].port;
        }
    }

    /// Whether a node whose ports do not ascend lists one of them twice.
    bool doubled() const { return doubled_; }

    /// Whether node `n` lists the link from its port `port` to `peer`'s port `peer_port`.
    bool lists(std::uint32_t n, std::uint16_t port, guid peer, std::uint16_t peer_port) const {
        if (n >= order_.size()) return false;
        const auto ports = s_.source.ports_of(s_.nodes[n]);
        const auto at = [&](std::size_t i) -> const dump_port& {
            return order_[n].empty() ? ports[i] : ports[order_[n][i]];
        };
        std::size_t low = 0, high = ports.size();
        while (low < high) {
            const auto middle = (low + high) / 2;
            at(middle).port < port ? low = middle + 1 : high = middle;
        }
        for (; low < ports.size() && at(low).port == port; ++low)
            if (at(low).peer == peer && at(low).peer_port == peer_port) return true;
        return false;
    }

  private:
    const state& s_;
    std::vector<std::vector<std::uint32_t>> order_;  ///< by node; empty where its ports ascend
    bool doubled_ = false;
};

std::string node_name(const state& s, std::uint32_t n) {
    return s.place[n].kind == node_kind::switch_node && s.place[n].index != none
               ? label(s, s.place[n].index)
               : std::string(s.nodes[n].name);
}

/// Routers have no index, and no links here: where the subnet ends is told with them.
void tell_router(state& s, std::uint32_t n, const dump_port& p) {
    constexpr std::size_t enough = 1000;  // bytes
    // So far only routers are left out, by GUID.
    const auto at = std::lower_bound(s.out.excluded.begin(), s.out.excluded.end(), p.peer,
                                     [](const exclusion& e, guid id) { return e.id < id; });
    if (at != s.out.excluded.end() && at->id == p.peer && at->why.size() < enough)
        at->why += fmt::format("; on {} port {}", node_name(s, n), p.port);
}

/// Returns whether only this end lists it.
bool take_link(state& s, const port_index& index, std::uint32_t n, std::uint32_t port_index) {
    const auto& p = s.source.ports[port_index];
    const auto peer = s.peer_node[port_index];
    const auto& self = s.nodes[n];
    if (s.nodes[peer].kind == node_kind::router && s.place[n].index != none) tell_router(s, n, p);
    if (s.place[n].index == none || s.place[peer].index == none) return false;
    // A tree has each link once, from below.
    const bool both_list = !s.source.untold.cables;
    const bool other_lists = both_list && index.lists(peer, p.peer_port, self.id, p.port);
    const bool first = std::tuple(self.id, p.port) < std::tuple(p.peer, p.peer_port);
    if (other_lists && !first) return false;  // taken from the other end
    const port_ref here{s.place[n].kind, s.place[n].index, p.port};
    const port_ref there{s.place[peer].kind, s.place[peer].index, p.peer_port};
    s.out.links.push_back(first ? link{here, there, p.rate} : link{there, here, p.rate});
    if (!other_lists && both_list && peer < s.with_record && !s.counts_only("one-way-link"))
        s.report("one-way-link", {end_name(s, here), end_name(s, there)},
                 fmt::format("only {} lists the link", end_name(s, here)), 1.0,
                 {port_id(s.out, here), port_id(s.out, there)});
    return both_list && !other_lists;
}

/// A port has one cable. Where two links claim it, one end's record is old or wrong, and nobody can say
/// which.
void find_doubled_ports(state& s) {
    const auto& links = s.out.links;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> ends;
    ends.reserve(2 * links.size());
    for (std::uint32_t i = 0; i < links.size(); ++i)
        for (const auto& e : {links[i].a, links[i].b})
            ends.emplace_back(
                (e.kind == node_kind::hca ? 0 : 1ull << 63) | std::uint64_t{e.index} << 16 | e.port, i);
    std::sort(ends.begin(), ends.end());
    for (std::size_t i = 1; i < ends.size(); ++i) {
        if (ends[i].first != ends[i - 1].first || s.counts_only("doubled-port")) continue;
        const auto &x = links[ends[i - 1].second], &y = links[ends[i].second];
        const bool at_a = x.a == y.a || x.a == y.b;
        const auto& port = at_a ? x.a : x.b;
        const auto& one = at_a ? x.b : x.a;
        const auto& other = y.a == port ? y.b : y.a;
        s.report(
            "doubled-port", {end_name(s, port)},
            fmt::format("{} and {} both claim to be at its other end", end_name(s, one), end_name(s, other)),
            1.0, {port_id(s.out, port)});
    }
}

}  // namespace

void take_links(state& s) {
    const port_index index(s);
    bool doubtful = index.doubled();
    for (std::uint32_t n = 0; n < s.with_record; ++n)
        for (auto i = s.nodes[n].first_port, end = i + s.nodes[n].port_count; i < end; ++i) {
            if (s.peer_node[i] != n) {
                const auto& ports = s.source.ports;
                doubtful |= i > s.nodes[n].first_port && ports[i - 1].port == ports[i].port;
                doubtful |= take_link(s, index, n, i);
            } else if (s.place[n].index != none && s.source.ports[i].port <= s.source.ports[i].peer_port &&
                       !s.counts_only("loop")) {
                s.report("loop", {node_name(s, n)},
                         fmt::format("port {} leads to port {} of the same node", s.source.ports[i].port,
                                     s.source.ports[i].peer_port),
                         1.0, {port_id(s.nodes[n].id, s.source.ports[i].port)});
            }
        }
    if (doubtful) find_doubled_ports(s);
}

}  // namespace banyan::topo::build
