// SPDX-License-Identifier: BSD-3-Clause
//
// ibnetdiscover's text form, as rdma-core prints it (infiniband-diags/ibnetdiscover.c). One pass, no copies
// but of names.
#include <algorithm>
#include <charconv>
#include <optional>

#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/crc32c.hpp"
#include "topo/readers/foreign.hpp"

namespace banyan::topo {
namespace {

/// Takes tokens off the front of one line; `column` of a complaint comes from what is left.
class cursor {
  public:
    explicit cursor(std::string_view line) : line_(line), rest_(line) {}

    bool skip(std::string_view text) {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    void blanks() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
    }
    template <class Number>
    std::optional<Number> number(int base = 10) {
        Number value{};
        const auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
        if (ec != std::errc{}) return std::nullopt;
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }
    /// Text up to `stop` (which is taken too); the whole rest when `stop` is absent gives nothing.
    std::optional<std::string_view> until(char stop) {
        const auto at = rest_.find(stop);
        if (at == std::string_view::npos) return std::nullopt;
        const auto out = rest_.substr(0, at);
        rest_.remove_prefix(at + 1);
        return out;
    }
    std::string_view rest() const { return rest_; }
    std::uint32_t column() const { return static_cast<std::uint32_t>(line_.size() - rest_.size()) + 1; }

  private:
    std::string_view line_, rest_;
};

struct node_id {
    node_kind kind;
    guid id;
};

// "S-fc6a1c0300000200" with its quotes.
std::optional<node_id> take_node_id(cursor& c) {
    if (!c.skip("\"")) return std::nullopt;
    node_id out{};
    if (c.skip("S-"))
        out.kind = node_kind::switch_node;
    else if (c.skip("H-"))
        out.kind = node_kind::hca;
    else if (c.skip("R-"))
        out.kind = node_kind::router;
    else
        return std::nullopt;
    const auto id = c.number<guid>(16);
    if (!id || !c.skip("\"")) return std::nullopt;
    out.id = *id;
    return out;
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

link_rate parse_rate(std::string_view text) {
    struct speed {
        std::string_view name;
        std::uint16_t lane_gbps10;
    };
    // Effective data rate of one lane (IBTA volume 2, encoding subtracted), in Gbit/s times 10.
    static constexpr speed speeds[] = {{"SDR", 20},    {"DDR", 40},   {"QDR", 80},
                                       {"FDR10", 100}, {"FDR", 136},  {"EDR", 250},
                                       {"HDR", 500},   {"NDR", 1000}, {"XDR", 2000}};
    link_rate rate;
    cursor c(text);
    if (const auto width = c.number<std::uint16_t>()) rate.width = *width;
    if (!c.skip("x")) return rate;
    c.blanks();
    const auto word = c.rest().substr(0, c.rest().find_first_of(" \t"));
    for (const auto& s : speeds)
        if (word == s.name) rate.lane_gbps10 = s.lane_gbps10;
    return rate;
}

class reader {
  public:
    explicit reader(dump& out) : out_(out) {}

    void line(std::string_view text) {
        ++number_;
        while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\t'))
            text.remove_suffix(1);
        if (text.empty()) return;
        if (text.starts_with("sysimgguid=0x")) {
            cursor c(text.substr(13));
            system_ = c.number<guid>(16).value_or(0);
        } else if (text.starts_with("vendid=")) {
            current_ = npos;  // what follows belongs to the next record
            system_ = 0;
        } else if (text.starts_with("Switch")) {
            head(text, node_kind::switch_node);
        } else if (text.starts_with("Ca")) {
            head(text, node_kind::hca);
        } else if (text.starts_with("Rt")) {
            head(text, node_kind::router);
        } else if (text[0] == '[') {
            port(text);
        } else if (!known_other(text)) {
            ++strange_;
            if (!out_.nodes.empty())
                complain(1, fmt::format("not a line of ibnetdiscover: \"{}\"", text.substr(0, 40)));
        }
    }

    std::uint32_t lines() const { return number_; }

  private:
    static constexpr std::size_t npos = SIZE_MAX;

    static bool known_other(std::string_view text) {
        for (const std::string_view head :
             {"#", "devid=", "switchguid=", "caguid=", "rtguid=", "Chassis", "Non-Chassis", "DR path"})
            if (text.starts_with(head)) return true;
        return false;
    }

    void complain(std::uint32_t column, std::string what) {
        constexpr std::size_t most =
            10'000;  // a binary file must not fill the memory with complaints about itself
        if (out_.complaints.size() < most) out_.complaints.push_back({number_, column, std::move(what)});
    }

    // Switch  64 "S-..."    # "name" enhanced port 0 lid 3 lmc 0      Ca  1 "H-..."    # "name"
    void head(std::string_view text, node_kind kind) {
        cursor c(text);
        c.skip(kind == node_kind::switch_node ? "Switch" : kind == node_kind::hca ? "Ca" : "Rt");
        c.blanks();
        const auto ports = c.number<std::uint16_t>();
        c.blanks();
        const auto id = ports ? take_node_id(c) : std::nullopt;
        if (!id || id->kind != kind) {
            current_ = npos;
            return complain(c.column(), "the head of a record is not readable; the record is skipped");
        }
        dump_node node;
        node.kind = kind;
        node.id = id->id;
        node.system = system_;
        node.ports = *ports;
        node.line = number_;
        const auto comment = c.rest();
        node.name = description(comment, kind == node_kind::switch_node ? "\" enhanced" : "");
        if (const auto lid = comment.rfind(" lid "); lid != std::string_view::npos) {
            cursor l(comment.substr(lid + 5));
            node.lid = l.number<std::uint32_t>().value_or(0);
        }
        current_ = out_.nodes.size();
        out_.nodes.push_back(std::move(node));
    }

    // [1]  "H-..."[1](guid)   # "name" lid 121 4xHDR        [1](guid)  "S-..."[1]   # lid 4 lmc 0 "name" lid
    // 3 4xHDR
    void port(std::string_view text) {
        if (current_ == npos) return complain(1, "a port outside a record");
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
            return complain(c.column(), "a port line is not readable; its link is skipped");
        dump_port out;
        out.port = *port;
        out.peer_kind = peer->kind;
        out.peer = peer->id;
        out.peer_port = *peer_port;
        const auto hash = c.rest().find('#');
        if (hash != std::string_view::npos) {
            const auto comment = c.rest().substr(hash);
            out.peer_name = description(comment, "\" lid ");
            const auto lid = comment.rfind(" lid ");
            if (lid != std::string_view::npos) {
                cursor tail(comment.substr(lid + 5));
                tail.number<std::uint32_t>();
                tail.blanks();
                out.rate = parse_rate(tail.rest());
            }
        }
        out_.nodes[current_].peers.push_back(std::move(out));
    }

    dump& out_;
    std::uint32_t number_ = 0;
    std::uint32_t strange_ = 0;
    std::size_t current_ = npos;
    guid system_ = 0;
};

/// Peers that are named by a port and have no record: the mark of a dump that was cut.
std::size_t missing_records(const dump& d) {
    std::vector<guid> known;
    known.reserve(d.nodes.size());
    for (const auto& n : d.nodes) known.push_back(n.id);
    std::sort(known.begin(), known.end());
    std::vector<guid> missing;
    for (const auto& n : d.nodes)
        for (const auto& p : n.peers)
            if (!std::binary_search(known.begin(), known.end(), p.peer)) missing.push_back(p.peer);
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing.size();
}

}  // namespace

result<dump> read_ibnetdiscover(std::string_view text) {
    if (text.empty())
        return fail(errc::invalid_input, "the dump is empty",
                    "did ibnetdiscover fail? look at its error output");
    if (text.size() > max_dump_bytes)
        return fail(errc::invalid_input, fmt::format("the dump is larger than {} bytes", max_dump_bytes));
    dump out;
    out.crc = crc32c(std::as_bytes(std::span(text)));
    reader r(out);
    for (std::size_t at = 0; at < text.size();) {
        const auto end = text.find('\n', at);
        r.line(text.substr(at, end == std::string_view::npos ? end : end - at));
        at = end == std::string_view::npos ? text.size() : end + 1;
    }
    if (out.nodes.empty()) return not_ibnetdiscover(text);
    // ibnetdiscover prints every node that it prints as a peer; half of them missing is no dirt, it is a lost
    // end.
    const auto missing = missing_records(out);
    if (text.back() != '\n' || missing > out.nodes.size() / 10)
        return fail(
            errc::invalid_input,
            fmt::format(
                "the dump is cut at line {}: {} nodes are named by their neighbours and have no record",
                r.lines(), missing),
            "run ibnetdiscover again and keep its whole output");
    return out;
}

}  // namespace banyan::topo
