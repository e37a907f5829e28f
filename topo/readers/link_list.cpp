// SPDX-License-Identifier: BSD-3-Clause
//
// ibdiagnet2.lst: a line for each cable, all numbers but the speed hexadecimal.
//
//     { CA Ports:01 SystemGUID:0002c90300165e63 NodeGUID:0002c90300165e60 PortGUID:0002c90300165e61
//     VenID:000002c9 DevID:1003 Rev:00000000 {n16 HCA-1} LID:0005 PN:01 } { SW Ports:24 ... {leaf-08}
//     LID:0002 PN:14 } PHY=4x LOG=ACT SPD=2.5
#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include "topo/readers/csv.hpp"
#include "topo/readers/cursor.hpp"
#include "topo/readers/node_table.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

struct listed_end {
    node_kind kind = node_kind::hca;
    guid id = 0, system = 0;
    std::uint16_t ports = 0, device = 0, port = 0;
    std::uint32_t lid = 0;
    std::string_view name;
};

/// The value of "KEY:value", which ends at a blank.
std::uint64_t value_of(std::string_view head, std::string_view key) {
    const auto at = head.find(key);
    if (at == std::string_view::npos) return 0;
    const auto value = head.substr(at + key.size());
    return hex_number(value.substr(0, value.find(' '))).value_or(0);
}

bool take_listed_end(cursor& c, listed_end& out) {
    c.blanks();
    if (c.skip("{ SW "))
        out.kind = node_kind::switch_node;
    else if (c.skip("{ RT ") || c.skip("{ RTR "))
        out.kind = node_kind::router;
    else if (!c.skip("{ CA "))
        return false;
    const auto head = c.until('{');
    if (!head) return false;
    const auto rest = c.rest();
    const auto close = rest.find("} LID:");
    if (close == std::string_view::npos) return false;
    out.name = rest.substr(0, close);
    c.skip(rest.substr(0, close + 6));
    const auto lid = c.number<std::uint32_t>(16);
    c.blanks();
    const auto port = lid && c.skip("PN:") ? c.number<std::uint16_t>(16) : std::nullopt;
    c.blanks();
    if (!port || !c.skip("}")) return false;
    out.lid = *lid & 0xffff;
    out.port = *port;
    out.id = value_of(*head, "NodeGUID:");
    out.system = value_of(*head, "SystemGUID:");
    out.ports = static_cast<std::uint16_t>(value_of(*head, "Ports:"));
    out.device = static_cast<std::uint16_t>(value_of(*head, "DevID:"));
    return out.id != 0;
}

/// "PHY=4x LOG=ACT SPD=25": the lane's rate as its name has it.
link_rate take_physical(cursor& c) {
    struct speed {
        std::string_view text, name;
    };
    static constexpr speed speeds[] = {
        {"2.5", "1xSDR"}, {"5", "1xDDR"},   {"10", "1xQDR"},  {"14", "1xFDR"},      {"25", "1xEDR"},
        {"50", "1xHDR"},  {"100", "1xNDR"}, {"200", "1xXDR"}, {"FDR10", "1xFDR10"}, {"FDR_10", "1xFDR10"}};
    link_rate out;
    c.blanks();
    if (c.skip("PHY=")) out.width = c.number<std::uint16_t>().value_or(0);
    c.until('=');  // LOG
    c.word();
    c.blanks();
    if (!c.skip("SPD=")) return out;
    const auto word = c.word();
    for (const auto& s : speeds)
        if (word == s.text) {
            cursor name(s.name);
            out.lane_gbps10 = take_rate(name).lane_gbps10;
        }
    return out;
}

struct listed_link {
    listed_end a, b;
    link_rate rate;
    std::uint32_t line;
};

std::uint32_t take_node(node_table& nodes, const listed_end& e, std::uint32_t line) {
    const auto at = nodes.node(e.id, line);
    auto& n = nodes[at];
    n.kind = e.kind;
    n.name = e.name;
    n.system = e.system;
    n.ports = std::max(n.ports, e.ports);
    n.device = e.device;
    if (n.lid == 0) n.lid = e.lid;
    return at;
}

/// How often each cable stands in the text.
class cable_count {
  public:
    explicit cable_count(const std::vector<listed_link>& links) {
        boost::unordered_flat_set<guid> listing;  // stand first in a line
        for (const auto& l : links) {
            listing.insert(l.a.id);
            seen_[cable_of(l)] |= way_of(l);
        }
        for (const auto& [ends, ways] : seen_) {
            doubled_ += ways == 3;
            expected_ +=
                ways == 3 || (listing.contains(ends.first.first) && listing.contains(ends.second.first));
        }
    }

    /// Whether each cable is listed by both its ends, as some releases do: then one that stands there once is
    /// one that its other end does not list. A list that has each once may have some twice: few of those that
    /// it could have twice, or few at all.
    bool by_both_ends() const {
        return doubled_ > 0 && 2 * doubled_ > expected_ && 100 * doubled_ >= seen_.size();
    }

    /// Lines of a cable that is listed above them already.
    std::vector<std::uint32_t> repeated(const std::vector<listed_link>& links) const {
        const bool both = by_both_ends();
        boost::unordered_flat_map<cable, unsigned, boost::hash<cable>> before;
        std::vector<std::uint32_t> out;
        for (const auto& l : links) {
            auto& ways = before[cable_of(l)];
            const auto way = both ? way_of(l) : 3u;
            if (ways & way) out.push_back(l.line);
            ways |= way;
        }
        return out;
    }

  private:
    using end = std::pair<guid, std::uint16_t>;
    using cable = std::pair<end, end>;

    static cable cable_of(const listed_link& l) {
        const end a{l.a.id, l.a.port}, b{l.b.id, l.b.port};
        return a < b ? cable{a, b} : cable{b, a};
    }
    static unsigned way_of(const listed_link& l) {
        return cable_of(l).first == end{l.a.id, l.a.port} ? 1u : 2u;
    }

    boost::unordered_flat_map<cable, unsigned, boost::hash<cable>> seen_;
    std::size_t doubled_ = 0;
    std::size_t expected_ = 0;  ///< that a list of both ends would have twice, as far as it goes
};

}  // namespace

bool is_link_list(std::string_view text) {
    return any_early_line(text, [](std::string_view line) {
        return (line.starts_with("{ CA ") || line.starts_with("{ SW ") || line.starts_with("{ RT")) &&
               line.find("NodeGUID:") != std::string_view::npos;
    });
}

void read_link_list(std::string_view text, dump& out) {
    std::vector<listed_link> links;
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        if (line.empty() || line[0] == '#') return;
        cursor c(line);
        listed_link l;
        if (!take_listed_end(c, l.a) || !take_listed_end(c, l.b))
            return complain(out, number, c.column(), "a link is not readable; it is skipped");
        l.rate = take_physical(c);
        l.line = number;
        links.push_back(l);
    });
    node_table nodes(out);
    const cable_count cables(links);
    const bool both = cables.by_both_ends();
    for (const auto line : cables.repeated(links))
        complain(out, line, 1, "this cable is listed above already: it is counted once");
    for (const auto& l : links) {
        const auto first = take_node(nodes, l.a, both ? 0 : l.line),
                   second = take_node(nodes, l.b, both ? 0 : l.line);
        if (!both) {
            nodes.add_link(first, l.a.port, second, l.b.port, l.rate, l.a.lid, l.b.lid);
            continue;
        }
        // A node's record is where it lists its own ports.
        nodes[first].line = l.line;
        dump_port p;
        p.port = l.a.port;
        p.lid = l.a.lid;
        p.peer = l.b.id;
        p.peer_port = l.b.port;
        p.rate = l.rate;
        nodes.add(first, p);
    }
    nodes.finish();
}

}  // namespace banyan::topo
