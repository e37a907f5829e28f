// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric in ibdiagnet2.db_csv: nodes, the ports with their LIDs and rates, and each cable once.
#include <fmt/format.h>

#include "topo/readers/cursor.hpp"
#include "topo/readers/node_table.hpp"
#include "topo/readers/sections.hpp"

namespace banyan::topo {
namespace {

/// PortInfo's codes (IBTA volume 1, 14.2.5.6; XDR and FDR10 as ibdiagnet extends them).
link_rate rate_of(std::uint64_t width, std::uint64_t speed) {
    link_rate out;
    switch (width) {
        case 1:
            out.width = 1;
            break;
        case 2:
            out.width = 4;
            break;
        case 4:
            out.width = 8;
            break;
        case 8:
            out.width = 12;
            break;
        case 16:
            out.width = 2;
            break;
        default:
            break;
    }
    std::string_view name;
    switch (speed) {
        case 1:
            name = "1xSDR";
            break;
        case 2:
            name = "1xDDR";
            break;
        case 4:
            name = "1xQDR";
            break;
        case 1 << 8:
            name = "1xFDR";
            break;
        case 1 << 9:
            name = "1xEDR";
            break;
        case 1 << 10:
            name = "1xHDR";
            break;
        case 1 << 11:
            name = "1xNDR";
            break;
        case 1 << 12:
            name = "1xXDR";
            break;
        case 1 << 16:
            name = "1xFDR10";
            break;
        default:
            break;
    }
    cursor c(name);
    out.lane_gbps10 = take_rate(c).lane_gbps10;
    return out;
}

struct port_info {
    link_rate rate;
    std::uint32_t lid = 0;
    std::uint8_t lmc = 0;
};

/// Where the columns of a section stand; a and b are those without which a row tells nothing.
struct columns {
    std::size_t a = table::none, b = table::none, a_port = table::none, b_port = table::none;
    std::size_t name = table::none, count = table::none, system = table::none, device = table::none;
    std::size_t lid = table::none, lmc = table::none, width = table::none, speed = table::none;
};

class db_csv_reader {
  public:
    explicit db_csv_reader(dump& out) : out_(out), nodes_(out) {}

    bool begin(std::string_view section, const table& t) {
        if (section == "NODES") {
            row_ = &db_csv_reader::node;
            at_.a = t.column({"nodeguid"});
            at_.b = t.column({"nodetype"});
            at_.name = t.column({"nodedesc"});
            at_.count = t.column({"numports"});
            at_.system = t.column({"systemimageguid"});
            at_.device = t.column({"deviceid"});
        } else if (section == "PORTS") {
            row_ = &db_csv_reader::port;
            at_.a = t.column({"nodeguid"});
            at_.b = t.column({"portnum", "portnumber"});
            at_.lid = t.column({"lid"});
            at_.lmc = t.column({"lmc"});
            at_.width = t.column({"linkwidthactv"});
            at_.speed = t.column({"linkspeedactv"});
        } else if (section == "LINKS") {
            has_links_ = true;
            row_ = &db_csv_reader::link;
            at_.a = t.column({"nodeguid1"});
            at_.a_port = t.column({"portnum1"});
            at_.b = t.column({"nodeguid2"});
            at_.b_port = t.column({"portnum2"});
        } else {
            return false;
        }
        return at_.a != table::none && at_.b != table::none;
    }

    void row(std::uint32_t number, const table& t, bool whole) {
        if (!whole || !(this->*row_)(number, t))
            complain(out_, number, 1, "a row is not readable; it is skipped");
    }

    bool has_links() const { return has_links_; }

    void finish() {
        for (const auto& l : links_) {
            const auto a = nodes_.find(l.a), b = nodes_.find(l.b);
            if (a == none || b == none) {
                complain(out_, l.line, 1, "a link leads to a node that NODES lacks; it is skipped");
                continue;
            }
            const auto of = [&](guid id, std::uint16_t port) {
                const auto at = ports_.find(key(id, port));
                return at == ports_.end() ? port_info{} : at->second;
            };
            const auto at_a = of(l.a, l.a_port), at_b = of(l.b, l.b_port);
            nodes_.add_link(a, l.a_port, b, l.b_port, at_a.rate.width != 0 ? at_a.rate : at_b.rate, at_a.lid,
                            at_b.lid);
        }
        nodes_.finish();
    }

  private:
    struct cable {
        guid a, b;
        std::uint16_t a_port, b_port;
        std::uint32_t line;
    };
    struct port_key {
        guid id;
        std::uint16_t port;
        bool operator==(const port_key&) const = default;
        friend std::size_t hash_value(const port_key& k) {
            return std::hash<guid>{}(k.id * 0x9e3779b97f4a7c15 + k.port);
        }
    };
    static port_key key(guid id, std::uint16_t port) { return {id, port}; }

    static std::optional<std::uint16_t> small(std::string_view text) {
        const auto n = whole_number(text);
        return n && *n <= UINT16_MAX ? std::optional(static_cast<std::uint16_t>(*n)) : std::nullopt;
    }

    bool node(std::uint32_t number, const table& t) {
        const auto id = hex_number(t[at_.a]);
        const auto type = whole_number(t[at_.b]);
        if (!id || *id == 0 || !type || *type < 1 || *type > 3) return false;
        auto& n = nodes_[nodes_.node(*id, number)];
        n.kind = *type == 1 ? node_kind::hca : *type == 2 ? node_kind::switch_node : node_kind::router;
        n.name = t[at_.name];
        n.ports = small(t[at_.count]).value_or(0);
        n.system = hex_number(t[at_.system]).value_or(0);
        n.device = small(t[at_.device]).value_or(0);
        return true;
    }

    bool port(std::uint32_t, const table& t) {
        const auto id = hex_number(t[at_.a]);
        const auto port = small(t[at_.b]);
        if (!id || !port) return false;
        const auto rate =
            rate_of(whole_number(t[at_.width]).value_or(0), whole_number(t[at_.speed]).value_or(0));
        const auto lid = static_cast<std::uint32_t>(whole_number(t[at_.lid]).value_or(0) & 0xffff);
        const auto lmc = static_cast<std::uint8_t>(whole_number(t[at_.lmc]).value_or(0) & 7);
        ports_.try_emplace(key(*id, *port), port_info{rate, lid, lmc});
        // NODES stands above.
        if (const auto at = nodes_.find(*id); *port == 0 && at != none) {
            auto& n = nodes_[at];
            n.lid = lid;
            n.lmc = lmc;
        }
        return true;
    }

    bool link(std::uint32_t number, const table& t) {
        const auto a = hex_number(t[at_.a]), b = hex_number(t[at_.b]);
        const auto a_port = small(t[at_.a_port]), b_port = small(t[at_.b_port]);
        if (!a || !b || !a_port || !b_port) return false;
        links_.push_back({*a, *b, *a_port, *b_port, number});
        return true;
    }

    dump& out_;
    node_table nodes_;
    bool has_links_ = false;
    bool (db_csv_reader::*row_)(std::uint32_t, const table&) = nullptr;
    columns at_;
    boost::unordered_flat_map<port_key, port_info> ports_;
    std::vector<cable> links_;
};

}  // namespace

bool is_db_csv(std::string_view text) {
    return text.starts_with("START_NODES\n") || text.starts_with("START_NODES\r") ||
           text.find("\nSTART_NODES\n") != std::string_view::npos ||
           text.find("\nSTART_NODES\r") != std::string_view::npos;
}

std::string_view read_db_csv(std::string_view text, dump& out) {
    db_csv_reader r(out);
    const auto open = for_each_section(
        text, [&](std::string_view name, const table& t) { return r.begin(name, t); },
        [&](std::uint32_t number, const table& t, bool whole) { r.row(number, t, whole); });
    r.finish();
    // ibdiagnet writes it of every fabric, after the others.
    return open.empty() && !r.has_links() ? "LINKS" : open;
}

}  // namespace banyan::topo
