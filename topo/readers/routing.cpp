// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/routing.hpp>
#include <fmt/format.h>

#include "topo/readers/cursor.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

constexpr std::uint32_t max_lid = 0xbfff;  ///< the largest unicast LID

// "Unicast lids [0x0-0x8d] of switch DR path slid 0; dlid 0; 0,1,33,29 guid 0xfc6a... (name):"
std::optional<guid> table_of(std::string_view line) {
    if (!line.starts_with("Unicast lids")) return std::nullopt;
    const auto at = line.find(" guid 0x");
    if (at == std::string_view::npos) return std::nullopt;
    return cursor(line.substr(at + 8)).number<guid>(16);
}

// "0x0001 034 : (Channel Adapter portguid 0x...: 'sm01 mlx5_0')"
bool take_route(std::string_view line, std::vector<std::uint16_t>& ports) {
    cursor c(line);
    if (!c.skip("0x")) return false;
    const auto lid = c.number<std::uint32_t>(16);
    c.blanks();
    const auto port = lid && *lid <= max_lid ? c.number<std::uint16_t>() : std::nullopt;
    if (!port) return false;
    if (ports.size() <= *lid) ports.resize(*lid + 1, routing::no_route);
    ports[*lid] = *port;
    return true;
}

std::uint64_t port_key(node_kind kind, std::uint32_t index, std::uint16_t port) {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 48 | std::uint64_t{index} << 16 | port;
}

}  // namespace

result<routing> read_routing(std::string_view text) {
    routing out;
    std::vector<std::uint16_t>* table = nullptr;
    for_each_line(text, [&](std::uint32_t, std::string_view line) {
        if (const auto id = table_of(line)) {
            table = &out.ports[*id];
        } else if (line.starts_with("0x")) {
            if (!table || !take_route(line, *table)) ++out.skipped_lines;
        }
    });
    if (out.ports.empty())
        return fail(errc::invalid_input, "no forwarding table in the text",
                    "give the output of dump_lfts or dump_fts");
    return out;
}

router::router(const fabric& f, const routing& r) : f_(f), r_(r) {
    link_of_port_.reserve(2 * f.links.size());
    for (std::uint32_t i = 0; i < f.links.size(); ++i)
        for (const auto& end : {f.links[i].a, f.links[i].b})
            link_of_port_[port_key(end.kind, end.index, end.port)] = i;
}

std::uint32_t router::link_at(node_kind kind, std::uint32_t index, std::uint16_t port) const {
    const auto at = link_of_port_.find(port_key(kind, index, port));
    return at == link_of_port_.end() ? none : at->second;
}

std::vector<std::uint32_t> router::path(std::uint32_t from_hca, std::uint32_t to_hca) const {
    constexpr std::size_t most_hops = 64;  // IBTA: a path has no more
    const auto lid = f_.hcas[to_hca].lid;
    std::vector<std::uint32_t> out;
    // The only port of most HCAs; where there are more, the first.
    auto link = link_at(node_kind::hca, from_hca, 1);
    port_ref at{node_kind::hca, from_hca, 1};
    while (link != none && out.size() < most_hops) {
        out.push_back(link);
        const auto& l = f_.links[link];
        const auto& next = l.a == at ? l.b : l.a;
        if (next.kind == node_kind::hca) return next.index == to_hca ? out : std::vector<std::uint32_t>{};
        const auto port = r_.port_to(f_.switches[next.index].id, lid);
        if (port == routing::no_route || port == 0) return {};
        at = {node_kind::switch_node, next.index, port};
        link = link_at(at.kind, at.index, at.port);
    }
    return {};
}

}  // namespace banyan::topo
