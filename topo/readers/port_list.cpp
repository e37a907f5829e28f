// SPDX-License-Identifier: BSD-3-Clause
//
// The port list of ibnetdiscover -p: a line for each port, connected or not.
//
//     CA   120  1 0xa088c20300010071 4x HDR - SW     3 16 0xfc6a1c0300000200 ( 'n16 mlx5_7' - 'leaf-08' )
//     SW     3 17 0xfc6a1c0300000200 4x SDR                                    'leaf-08'
#include <algorithm>

#include "topo/readers/cursor.hpp"
#include "topo/readers/node_table.hpp"
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
    end self, peer;  ///< no peer where its GUID is 0: a port that is down
    link_rate rate;
};

class port_list {
  public:
    explicit port_list(dump& out) : nodes_(out) {}

    /// Lines of one node stand apart in some versions: they are joined by GUID.
    void add(std::uint32_t number, const line_of_port& l) {
        const auto seen = nodes_.size();
        const auto at = nodes_.node(l.self.id, number);
        auto& n = nodes_[at];
        if (nodes_.size() > seen) {
            n.kind = l.self.kind;
            n.name = l.self.name;
            n.lid = l.self.lid;
        }
        n.ports = std::max(n.ports, l.self.port);
        own_.push_back({at, l.self.port});
        if (l.peer.id == 0) return;
        dump_port p;
        p.port = l.self.port;
        p.lid = l.self.lid;
        p.peer = l.peer.id;
        p.peer_port = l.peer.port;
        p.peer_kind = l.peer.kind;
        p.peer_lid = l.peer.lid;
        p.peer_name = l.peer.name;
        p.rate = l.rate;
        nodes_.add(at, p);
    }
    bool empty() const { return own_.empty(); }
    void finish() {
        nodes_.join_ports(own_);
        nodes_.finish();
    }

  private:
    node_table nodes_;
    std::vector<node_table::own_port> own_;
};

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
    port_list lines(out);
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        if (line.empty() || line[0] == '#') return;
        cursor c(line);
        auto self = take_end(c);
        if (!self) {
            if (!lines.empty())
                complain(out, number, c.column(), "not a line of ibnetdiscover -p; it is skipped");
            return;
        }
        line_of_port l{*self, {}, {}};
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
        lines.add(number, l);
    });
    lines.finish();
}

}  // namespace banyan::topo
