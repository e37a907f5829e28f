// SPDX-License-Identifier: BSD-3-Clause
//
// What iblinkinfo prints, as rdma-core has it (infiniband-diags/iblinkinfo.c): a heading for each node and a
// line for each port, connected or not; with -l the node stands in the line instead.
//
//     CA: n16 mlx5_7:
//           0xa088c20300010071    120    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       3   16[  ]
//           "leaf-08" ( )
//     Switch: 0xfc6a1c0300000200 leaf-08:
//                3   17[  ] ==(                Down/ Polling)==>             [  ] "" ( )
//     0xa088c20300010071 "   n16 mlx5_7"    120    1[  ] ==( 4X ...)==>  0xfc6a1c0300000200      3   16[  ]
//     "leaf-08" ( )
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/cursor.hpp"
#include "topo/readers/node_table.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

constexpr std::string_view arrow_tail = "==(", arrow_head = ")==>";

struct info_end {
    guid id = 0;  ///< 0 = the line has none
    std::uint32_t lid = 0;
    std::uint16_t port = 0;
    std::string_view name;
};

struct port_line {
    std::uint32_t node = none;
    std::uint32_t line = 0;
    info_end self, peer;
    link_rate rate;
};

/// "4X        53.125 Gbps Active/  LinkUp": the rate of a lane with its encoding.
link_rate take_lanes(std::string_view text) {
    struct speed {
        std::string_view gbps, name;
    };
    static constexpr speed speeds[] = {
        {"2.5", "SDR"},     {"5.0", "DDR"},      {"5", "DDR"},      {"10.0", "QDR"},   {"10", "QDR"},
        {"14.0625", "FDR"}, {"25.78125", "EDR"}, {"53.125", "HDR"}, {"106.25", "NDR"}, {"212.5", "XDR"}};
    cursor c(text);
    c.blanks();
    link_rate out;
    const auto width = c.number<std::uint16_t>();
    if (!width || !c.skip("X")) return out;
    c.blanks();
    const auto number = c.word();
    std::string name = "?";
    for (const auto& s : speeds)
        if (s.gbps == number) name = s.name;
    if (text.find("FDR10") != std::string_view::npos) name = "FDR10";
    name = "1x" + name;
    cursor of_lane(name);
    out = take_rate(of_lane);
    out.width = *width;
    return out;
}

/// `0xGUID "NAME"    LID    PORT[EXT]`, of which GUID and name may be missing.
bool take_self(std::string_view text, info_end& out) {
    text = trim(text);
    const auto bracket = text.rfind('[');
    if (bracket == std::string_view::npos || text.back() != ']') return false;
    const auto before = trim(text.substr(0, bracket));
    const auto port_at = before.find_last_of(" \t") + 1;
    const auto upto_lid = trim(before.substr(0, port_at));
    const auto lid_at = upto_lid.find_last_of(" \t") + 1;
    const auto port = cursor(before.substr(port_at)).number<std::uint16_t>();
    const auto lid = cursor(upto_lid.substr(lid_at)).number<std::uint32_t>();
    if (!port || !lid) return false;
    out.port = *port;
    out.lid = *lid;
    cursor c(trim(upto_lid.substr(0, lid_at)));
    if (!c.skip("0x")) return true;
    const auto id = c.number<guid>(16);
    if (!id) return false;
    out.id = *id;
    c.blanks();
    const auto quoted = c.rest();
    if (quoted.size() >= 2 && quoted.front() == '"' && quoted.back() == '"')
        out.name = trim(quoted.substr(1, quoted.size() - 2));
    return true;
}

/// `0xGUID      LID   PORT[EXT] "NAME" (REMARKS)`; false where the port is not connected.
bool take_peer(std::string_view text, info_end& out) {
    cursor c(text);
    c.blanks();
    if (c.skip("0x")) out.id = c.number<guid>(16).value_or(0);
    c.blanks();
    const auto lid = c.number<std::uint32_t>();
    c.blanks();
    const auto port = lid ? c.number<std::uint16_t>() : std::nullopt;
    if (!port) return false;
    out.lid = *lid;
    out.port = *port;
    const auto open = c.rest().find('"'), close = c.rest().rfind("\" (");
    if (open != std::string_view::npos && close != std::string_view::npos && close > open)
        out.name = c.rest().substr(open + 1, close - open - 1);
    return true;
}

class link_info {
  public:
    explicit link_info(dump& out) : out_(out), nodes_(out) {}

    void line(std::uint32_t number, std::string_view text) {
        if (text.empty()) return;
        const auto tail = text.find(arrow_tail);
        if (tail != std::string_view::npos) return port(number, text, tail);
        if (heading(number, text) || lines_.empty()) return;
        complain(out_, number, 1, fmt::format("not a line of iblinkinfo: \"{}\"", text.substr(0, 40)));
    }

    /// How many peers are not in the text.
    std::size_t finish() {
        index();
        std::size_t strangers = 0;
        for (const auto& l : lines_) {
            if (l.peer.port == 0) continue;
            const auto peer = peer_of(l);
            dump_port p;
            p.port = l.self.port;
            p.lid = l.self.lid;
            p.peer_port = l.peer.port;
            p.rate = l.rate;
            p.peer_name = l.peer.name;
            p.peer_lid = l.peer.lid;
            if (peer == none && l.peer.id == 0) {
                ++strangers;
                complain(
                    out_, l.line, 1,
                    fmt::format("LID {} at the other end of the link is no node's of this text, or several "
                                "nodes'; the link is skipped (is the end of the text missing?)",
                                l.peer.lid));
                continue;
            }
            p.peer = peer == none ? l.peer.id : nodes_[peer].id;
            if (peer == none) p.peer_kind = node_kind::hca;
            nodes_.add(l.node, p);
        }
        std::vector<node_table::own_port> own;
        for (const auto& l : lines_)
            if (!l.self.name.empty()) own.push_back({l.node, l.self.port});
        nodes_.join_ports(own);
        nodes_.finish();
        return strangers;
    }

  private:
    struct heading_of_node {
        node_kind kind = node_kind::hca;
        std::string_view name;
        guid id = 0;
        std::uint32_t index = none;  ///< in nodes_, once its GUID is known
    };

    bool heading(std::uint32_t number, std::string_view text) {
        heading_of_node h;
        cursor c(text);
        if (c.skip("Switch: "))
            h.kind = node_kind::switch_node;
        else if (c.skip("RT: ") || c.skip("Router: "))
            h.kind = node_kind::router;
        else if (!c.skip("CA: "))
            return false;
        if (c.skip("0x")) {
            h.id = c.number<guid>(16).value_or(0);
            c.blanks();
        }
        h.name = c.rest();
        if (h.name.ends_with(':')) h.name.remove_suffix(1);
        if (h.kind == node_kind::switch_node && h.id == 0) {
            heading_.reset();
            complain(out_, number, c.column(), "the heading of a switch has no GUID; its ports are skipped");
            return true;
        }
        heading_ = h;
        if (h.id != 0) begin(number, h.id);
        return true;
    }

    void begin(std::uint32_t number, guid id) {
        heading_->index = nodes_.node(id, number);
        auto& n = nodes_[heading_->index];
        n.kind = heading_->kind;
        n.name = heading_->name;
    }

    void port(std::uint32_t number, std::string_view text, std::size_t tail) {
        const auto head = text.find(arrow_head, tail);
        port_line l;
        l.line = number;
        if (head == std::string_view::npos || !take_self(text.substr(0, tail), l.self))
            return complain(out_, number, 1, "a port line is not readable; its link is skipped");
        if (!l.self.name.empty()) {
            l.node = of_line_mode(number, l.self);
        } else {
            if (!heading_) return complain(out_, number, 1, "a port without a node above it");
            if (heading_->index == none) {
                if (l.self.id == 0) return complain(out_, number, 1, "the port of an HCA has no GUID");
                begin(number, l.self.id);
            }
            l.node = heading_->index;
        }
        auto& n = nodes_[l.node];
        n.ports = std::max(n.ports, l.self.port);
        if (n.lid == 0) n.lid = l.self.lid;
        // A port is connected where a peer stands; what is down has none.
        if (take_peer(text.substr(head + arrow_head.size()), l.peer))
            l.rate = take_lanes(text.substr(tail + arrow_tail.size(), head - tail - arrow_tail.size()));
        lines_.push_back(l);
    }

    /// With -l the line does not say what the node is: only a switch has its GUID at several ports, or a port
    /// whose LID it shares with others.
    std::uint32_t of_line_mode(std::uint32_t number, const info_end& self) {
        const auto seen = nodes_.size();
        const auto at = nodes_.node(self.id, number);
        auto& n = nodes_[at];
        n.kind = nodes_.size() > seen ? node_kind::hca : node_kind::switch_node;
        n.name = self.name;
        heading_.reset();
        return at;
    }

    static std::uint64_t key(std::uint32_t lid, std::uint16_t port) {
        return std::uint64_t{lid} << 16 | port;
    }

    void index() {
        next_.assign(lines_.size(), none);
        for (std::uint32_t i = 0; i < lines_.size(); ++i) {
            const auto& l = lines_[i];
            const auto [at, fresh] = by_port_.try_emplace(key(l.self.lid, l.self.port), i);
            if (!fresh) next_[i] = std::exchange(at->second, i);
            const auto [of_lid, first] = by_lid_.try_emplace(l.self.lid, l.node);
            if (!first && of_lid->second != l.node) of_lid->second = none;
            if (l.self.id != 0) by_guid_.try_emplace(l.self.id, l.node);
        }
    }

    /// By its GUID; by the LID and port that a line has as its own, and where two do, by that which leads
    /// back.
    std::uint32_t peer_of(const port_line& l) const {
        if (l.peer.id != 0) {
            const auto at = by_guid_.find(l.peer.id);
            return at == by_guid_.end() ? nodes_.find(l.peer.id) : at->second;
        }
        if (l.peer.lid == 0) return none;
        const auto at = by_port_.find(key(l.peer.lid, l.peer.port));
        if (at == by_port_.end()) {
            const auto of_lid = by_lid_.find(l.peer.lid);
            return of_lid == by_lid_.end() ? none : of_lid->second;
        }
        if (next_[at->second] == none) return lines_[at->second].node;
        constexpr unsigned most = 8;  // nodes that claim one LID
        std::uint32_t found = none;
        unsigned looked = 0;
        for (auto i = at->second; i != none; i = next_[i]) {
            if (++looked > most) return none;
            const auto& other = lines_[i];
            if (other.peer.lid != l.self.lid || other.peer.port != l.self.port) continue;
            if (found != none && found != other.node) return none;
            found = other.node;
        }
        return found;
    }

    dump& out_;
    node_table nodes_;
    std::optional<heading_of_node> heading_;
    std::vector<port_line> lines_;
    std::vector<std::uint32_t> next_;  ///< by line: another with the same LID and port
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> by_port_;
    boost::unordered_flat_map<std::uint32_t, std::uint32_t> by_lid_;
    boost::unordered_flat_map<guid, std::uint32_t> by_guid_;
};

}  // namespace

bool is_link_info(std::string_view text) {
    return any_early_line(text, [](std::string_view line) {
        // Nothing a node calls itself stands at the beginning of such a line. ibqueryerrors -r shows some
        // too.
        if (!line.starts_with(' ') && !line.starts_with('\t') && !line.starts_with("0x")) return false;
        const auto tail = line.find(arrow_tail);
        return tail != std::string_view::npos && line.find(arrow_head, tail) != std::string_view::npos &&
               line.find("Link info:") == std::string_view::npos;
    });
}

std::size_t read_link_info(std::string_view text, dump& out) {
    link_info r(out);
    for_each_line(text, [&](std::uint32_t number, std::string_view line) { r.line(number, line); });
    return r.finish();
}

}  // namespace banyan::topo
