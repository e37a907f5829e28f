// SPDX-License-Identifier: BSD-3-Clause
//
// ibdiagnet2.lst: a line for each cable, all numbers but the speed hexadecimal.
//
//     { CA Ports:01 SystemGUID:0002c90300165e63 NodeGUID:0002c90300165e60 PortGUID:0002c90300165e61
//     VenID:000002c9 DevID:1003 Rev:00000000 {n16 HCA-1} LID:0005 PN:01 } { SW Ports:24 ... {leaf-08}
//     LID:0002 PN:14 } PHY=4x LOG=ACT SPD=2.5
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

}  // namespace

bool is_link_list(std::string_view text) {
    return any_early_line(text, [](std::string_view line) {
        return (line.starts_with("{ CA ") || line.starts_with("{ SW ") || line.starts_with("{ RT")) &&
               line.find("NodeGUID:") != std::string_view::npos;
    });
}

void read_link_list(std::string_view text, dump& out) {
    node_table nodes(out);
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        if (line.empty() || line[0] == '#') return;
        cursor c(line);
        listed_end a, b;
        if (!take_listed_end(c, a) || !take_listed_end(c, b))
            return complain(out, number, c.column(), "a link is not readable; it is skipped");
        const auto first = take_node(nodes, a, number), second = take_node(nodes, b, number);
        nodes.add_link(first, a.port, second, b.port, take_physical(c), a.lid, b.lid);
    });
    nodes.finish();
}

}  // namespace banyan::topo
