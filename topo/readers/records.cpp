// SPDX-License-Identifier: BSD-3-Clause
//
// ibnetdiscover's record form, as rdma-core prints it (infiniband-diags/ibnetdiscover.c): a record for each
// node, a line for each connected port. One pass; names are views into the text.
#include "topo/readers/records.hpp"

#include <fmt/format.h>

#include "topo/readers/cursor.hpp"

namespace banyan::topo {
namespace {

struct node_id {
    node_kind kind;
    guid id;
};

// "S-fc6a1c0300000200" with its quotes.
std::optional<node_id> take_node_id(cursor& c) {
    node_id out{};
    if (c.skip("\"S-"))
        out.kind = node_kind::switch_node;
    else if (c.skip("\"H-"))
        out.kind = node_kind::hca;
    else if (c.skip("\"R-"))
        out.kind = node_kind::router;
    else
        return std::nullopt;
    const auto id = c.number<guid>(16);
    if (!id || !c.skip("\"")) return std::nullopt;
    out.id = *id;
    return out;
}

/// The number after the last " lid "; what follows it is left in `tail`.
std::uint32_t last_lid(std::string_view comment, cursor& tail) {
    const auto at = comment.rfind(" lid ");
    if (at == std::string_view::npos) return 0;
    tail = cursor(comment.substr(at + 5));
    return tail.number<std::uint32_t>().value_or(0);
}

/// Of " lmc 3"; a mask has three bits.
std::uint8_t take_lmc(cursor& c) {
    return c.skip(" lmc ") ? static_cast<std::uint8_t>(c.number<std::uint16_t>().value_or(0) & 7) : 0;
}

// Descriptions are not escaped: a quote inside belongs to the name, so the last quote before what follows
// ends it.
std::string_view description(std::string_view comment, std::string_view follows) {
    const auto open = comment.find('"');
    if (open == std::string_view::npos) return {};
    auto close = follows.empty() ? comment.rfind('"') : comment.rfind(follows);
    if (close == std::string_view::npos || close <= open) close = comment.rfind('"');
    return close > open ? comment.substr(open + 1, close - open - 1) : std::string_view{};
}

class line_reader {
  public:
    explicit line_reader(dump& out) : out_(out) {}

    void line(std::uint32_t number, std::string_view text) {
        number_ = number;
        if (text.empty()) return;
        switch (text[0]) {
            case '[':
                // A shell's prompt may begin so too.
                if (text.size() == 1 || (text[1] >= '0' && text[1] <= '9')) return port(text);
                break;
            case '#':
                return;
            case '<':
            case '>':
                marked_ += text.size() > 1 && text[1] == ' ';
                break;
            case 'S':
                if (text.starts_with("Switch")) return head(text.substr(6), node_kind::switch_node, text);
                break;
            case 'C':
                if (text.starts_with("Ca\t") || text.starts_with("Ca "))
                    return head(text.substr(2), node_kind::hca, text);
                break;
            case 'R':
                if (text.starts_with("Rt")) return head(text.substr(2), node_kind::router, text);
                break;
            case 'v':
                if (!text.starts_with("vendid=")) break;
                current_ = npos;  // what follows belongs to the next record
                system_ = 0;
                device_ = 0;
                return;
            case 'd':
                if (!text.starts_with("devid=0x")) break;
                device_ = cursor(text.substr(8)).number<std::uint16_t>(16).value_or(0);
                return;
            case 's':
                if (!text.starts_with("sysimgguid=0x")) break;
                system_ = cursor(text.substr(13)).number<guid>(16).value_or(0);
                return;
            default:
                break;
        }
        if (!known_other(text) && !out_.nodes.empty())
            complain(out_, number_, 1,
                     fmt::format("not a line of ibnetdiscover: \"{}\"", text.substr(0, 40)));
    }

    std::size_t marked() const { return marked_; }

  private:
    static constexpr std::size_t npos = SIZE_MAX;

    static bool known_other(std::string_view text) {
        for (const std::string_view head :
             {"switchguid=", "caguid=", "rtguid=", "Chassis", "Non-Chassis", "DR path"})
            if (text.starts_with(head)) return true;
        return false;
    }

    // Switch  64 "S-..."    # "name" enhanced port 0 lid 3 lmc 0      Ca  1 "H-..."    # "name"
    void head(std::string_view after, node_kind kind, std::string_view whole) {
        cursor c(after);
        c.blanks();
        const auto ports = c.number<std::uint16_t>();
        c.blanks();
        const auto id = ports ? take_node_id(c) : std::nullopt;
        if (!id || id->kind != kind) {
            current_ = npos;
            const auto column = c.column() + static_cast<std::uint32_t>(whole.size() - after.size());
            return complain(out_, number_, column,
                            "the head of a record is not readable; the record is skipped");
        }
        dump_node node;
        node.kind = kind;
        node.id = id->id;
        node.system = system_;
        node.device = device_;
        node.ports = *ports;
        node.line = number_;
        node.first_port = static_cast<std::uint32_t>(out_.ports.size());
        node.name = description(c.rest(), kind == node_kind::switch_node ? "\" enhanced" : "");
        cursor tail("");
        if (kind == node_kind::switch_node) {
            node.lid = last_lid(c.rest(), tail);
            node.lmc = take_lmc(tail);
        }
        current_ = out_.nodes.size();
        out_.nodes.push_back(node);
    }

    // [1]  "H-..."[1](guid)   # "name" lid 121 4xHDR
    // [1](guid)  "S-..."[1]   # lid 4 lmc 0 "name" lid 3 4xHDR
    void port(std::string_view text) {
        if (current_ == npos) return complain(out_, number_, 1, "a port outside a record");
        cursor c(text);
        c.skip("[");
        const auto port = c.number<std::uint16_t>();
        bool good = port && c.skip("]");
        if (good && c.skip("[")) good = c.until(']').has_value();  // external port number
        if (good && c.skip("(")) good = c.until(')').has_value();  // the port's own GUID
        c.blanks();
        const auto peer = good ? take_node_id(c) : std::nullopt;
        const auto peer_port = peer && c.skip("[") ? c.number<std::uint16_t>() : std::nullopt;
        if (!peer_port || !c.skip("]"))
            return complain(out_, number_, c.column(), "a port line is not readable; its link is skipped");
        auto& node = out_.nodes[current_];
        dump_port p;
        p.port = *port;
        p.peer_kind = peer->kind;
        p.peer = peer->id;
        p.peer_port = *peer_port;
        if (const auto hash = c.rest().find('#'); hash != std::string_view::npos) {
            const auto comment = c.rest().substr(hash);
            p.peer_name = description(comment, "\" lid ");
            cursor tail("");
            p.peer_lid = last_lid(comment, tail);
            tail.blanks();
            p.rate = take_rate(tail);
            if (node.kind != node_kind::switch_node && comment.starts_with("# lid ")) {
                cursor own(comment.substr(6));
                p.lid = own.number<std::uint32_t>().value_or(0);
                p.lmc = take_lmc(own);
                if (node.port_count == 0 && node.kind == node_kind::hca) node.lid = p.lid;
            }
        }
        out_.ports.push_back(p);
        ++node.port_count;
    }

    dump& out_;
    std::uint32_t number_ = 0;
    std::size_t current_ = npos, marked_ = 0;
    guid system_ = 0;
    std::uint16_t device_ = 0;
};

}  // namespace

void complain(dump& out, std::uint32_t line, std::uint32_t column, std::string what) {
    constexpr std::size_t most = 10'000;
    if (out.complaints.size() < most) out.complaints.push_back({line, column, std::move(what)});
}

std::size_t read_records(std::string_view text, dump& out) {
    line_reader r(out);
    for_each_line(text, [&](std::uint32_t number, std::string_view line) { r.line(number, line); });
    return r.marked();
}

}  // namespace banyan::topo
