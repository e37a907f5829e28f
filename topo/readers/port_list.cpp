// SPDX-License-Identifier: BSD-3-Clause
//
// The port list of ibnetdiscover -p: a line for each port, connected or not.
//
//     CA   120  1 0xa088c20300010071 4x HDR - SW     3 16 0xfc6a1c0300000200 ( 'n16 mlx5_7' - 'leaf-08' )
//     SW     3 17 0xfc6a1c0300000200 4x SDR                                    'leaf-08'
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topo/readers/cursor.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

struct end {
    node_kind kind = node_kind::hca;
    std::uint32_t lid = 0;
    std::uint16_t port = 0;
    guid id = 0;
    std::string_view name;
};

std::optional<end> take_end(cursor& c) {
    end out;
    if (c.skip("SW "))
        out.kind = node_kind::switch_node;
    else if (c.skip("RT "))
        out.kind = node_kind::router;
    else if (!c.skip("CA "))
        return std::nullopt;
    c.blanks();
    const auto lid = c.number<std::uint32_t>();
    c.blanks();
    const auto port = lid ? c.number<std::uint16_t>() : std::nullopt;
    c.blanks();
    const auto id = port && c.skip("0x") ? c.number<guid>(16) : std::nullopt;
    if (!id) return std::nullopt;
    out.lid = *lid;
    out.port = *port;
    out.id = *id;
    return out;
}

// ( 'a' - 'b' ); either name may have quotes, so the middle is where "' - '" stands.
bool take_names(cursor& c, end& a, end& b) {
    c.blanks();
    if (!c.skip("( '")) return false;
    auto names = c.rest();
    const auto middle = names.find("' - '");
    const auto last = names.rfind("' )");
    if (middle == std::string_view::npos || last == std::string_view::npos || last < middle + 5) return false;
    a.name = names.substr(0, middle);
    b.name = names.substr(middle + 5, last - middle - 5);
    return true;
}

struct line_of_port {
    end self, peer;
    link_rate rate;
    std::uint32_t line;
};

/// Lines of one node stand apart in some versions: they are joined by GUID, in the order of the first.
void to_nodes(std::vector<line_of_port>& lines, dump& out) {
    std::map<guid, std::uint32_t> order;
    for (const auto& l : lines) order.try_emplace(l.self.id, static_cast<std::uint32_t>(order.size()));
    std::stable_sort(lines.begin(), lines.end(), [&](const auto& x, const auto& y) {
        return std::pair(order[x.self.id], x.self.port) < std::pair(order[y.self.id], y.self.port);
    });
    for (const auto& l : lines) {
        if (out.nodes.empty() || out.nodes.back().id != l.self.id) {
            dump_node n;
            n.id = l.self.id;
            n.kind = l.self.kind;
            n.name = l.self.name;
            n.lid = l.self.lid;
            n.line = l.line;
            n.first_port = static_cast<std::uint32_t>(out.ports.size());
            out.nodes.push_back(n);
        }
        auto& n = out.nodes.back();
        n.ports = std::max(n.ports, l.self.port);
        if (l.peer.id == 0) continue;  // a port that is down
        dump_port p;
        p.port = l.self.port;
        if (n.kind != node_kind::switch_node) p.lid = l.self.lid;
        p.peer = l.peer.id;
        p.peer_port = l.peer.port;
        p.peer_kind = l.peer.kind;
        p.peer_lid = l.peer.lid;
        p.peer_name = l.peer.name;
        p.rate = l.rate;
        out.ports.push_back(p);
        ++n.port_count;
    }
}

}  // namespace

bool is_port_list(std::string_view text) {
    const auto start = text.substr(0, 65536);
    for (const std::string_view head : {"SW ", "CA ", "RT "})
        for (std::size_t at = start.find(head); at != std::string_view::npos; at = start.find(head, at + 1))
            if (at == 0 || start[at - 1] == '\n') {
                cursor c(start.substr(at, start.find('\n', at) - at));
                if (take_end(c)) return true;
            }
    return false;
}

void read_port_list(std::string_view text, dump& out) {
    std::vector<line_of_port> lines;
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        if (line.empty() || line[0] == '#') return;
        cursor c(line);
        auto self = take_end(c);
        if (!self) {
            if (!lines.empty())
                complain(out, number, c.column(), "not a line of ibnetdiscover -p; it is skipped");
            return;
        }
        line_of_port l{*self, {}, {}, number};
        c.blanks();
        l.rate = take_rate(c);
        c.blanks();
        if (c.skip("- ")) {
            const auto peer = take_end(c);
            if (!peer || peer->id == 0)
                return complain(out, number, c.column(),
                                "the peer of a port is not readable; its link is skipped");
            l.peer = *peer;
            if (!take_names(c, l.self, l.peer))
                complain(out, number, c.column(), "the names of a link are not readable");
        } else if (c.skip("'") && c.rest().ends_with("'")) {
            l.self.name = c.rest().substr(0, c.rest().size() - 1);
        }
        lines.push_back(l);
    });
    to_nodes(lines, out);
}

}  // namespace banyan::topo
