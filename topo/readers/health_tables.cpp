// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/health_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/sections.hpp"

namespace banyan::topo {
namespace {

/// Without what differs between tools, see plain_name().
constexpr std::pair<std::string_view, link_counter> counters[] = {
    {"symbolerror", link_counter::symbol_errors},
    {"linkerrorrecovery", link_counter::recoveries},
    {"linkdowned", link_counter::downed},
    {"linkdown", link_counter::downed},
    {"portrcverrors", link_counter::receive_errors},
    {"locallinkintegrityerrors", link_counter::local_integrity},
    {"excessivebufferoverrunerrors", link_counter::buffer_overruns},
    {"excessivebuffererrors", link_counter::buffer_overruns},
};

bool is_effective_ber(std::string_view plain) { return plain == "effectiveber" || plain == "effber"; }

bool accuses(std::string_view plain) {
    return is_effective_ber(plain) || plain == "symbolber" ||
           std::any_of(std::begin(counters), std::end(counters),
                       [&](const auto& c) { return c.first == plain; });
}

/// Whole, or as telemetry has it: "12.0". What is too large for us is very large.
std::uint64_t count_of(std::string_view text) {
    constexpr std::uint64_t most = 1'000'000'000'000'000'000;
    if (const auto n = whole_number(text)) return *n;
    if (const auto n = real_number(text)) return *n < double{most} ? static_cast<std::uint64_t>(*n) : most;
    text = trim(text);
    if (!text.starts_with("0x") || text.size() <= 18) return 0;
    return text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos ? most : 0;
}

class section_reader {
  public:
    explicit section_reader(health& out) : out_(out) {}

    bool begin(std::string_view section, const table& t) {
        if (section == "PM_INFO") {
            row_ = &section_reader::port;
            out_.counters_told = true;
            return ports_.columns(t);
        }
        id_ = t.column({"nodeguid"});
        if (section == "NODES_INFO") {
            row_ = &section_reader::node;
            major_ = t.column({"fwinfomajor"});
            minor_ = t.column({"fwinfominor"});
            sub_ = t.column({"fwinfosubminor"});
            // The short fields have eight bits each; newer firmware needs the long ones.
            if (t.column({"fwinfoextendedmajor"}) != table::none) {
                major_ = t.column({"fwinfoextendedmajor"});
                minor_ = t.column({"fwinfoextendedminor"});
                sub_ = t.column({"fwinfoextendedsubminor"});
            }
            board_ = t.column({"fwinfopsid"});
            device_ = t.column({"hwinfodeviceid"});
            return id_ != table::none && major_ != table::none && minor_ != table::none &&
                   sub_ != table::none;
        }
        if (section != "SM_INFO" && section != "SMS") return false;
        row_ = &section_reader::manager;
        out_.managers_listed = true;
        if (id_ == table::none) id_ = t.column({"portguid", "guid"});
        lid_ = t.column({"lid"});
        priority_ = t.column({"priority"});
        state_ = t.column({"smstate", "state"});
        return id_ != table::none && state_ != table::none;
    }

    void row(const table& t, bool whole) {
        if (!whole)
            ++out_.skipped_lines;
        else
            (this->*row_)(t);
    }

  private:
    void port(const table& t) { ports_.take(t, out_); }
    void node(const table& t) {
        const auto id = hex_number(t[id_]);
        const auto major = whole_number(t[major_]), minor = whole_number(t[minor_]),
                   sub = whole_number(t[sub_]);
        // "N/A" where a node did not answer.
        if (!id || !major || !minor || !sub) return;
        out_.firmware.push_back({*id, fmt::format("{}.{}.{}", *major, *minor, *sub), std::string(t[board_]),
                                 static_cast<std::uint32_t>(whole_number(t[device_]).value_or(0))});
    }
    void manager(const table& t) {
        const auto id = hex_number(t[id_]);
        const auto state = whole_number(t[state_]);
        if (!id || !state) {
            ++out_.skipped_lines;
            return;
        }
        subnet_manager m;
        m.id = *id;
        m.lid = static_cast<std::uint32_t>(whole_number(t[lid_]).value_or(0) & 0xffff);
        m.priority = static_cast<std::uint8_t>(whole_number(t[priority_]).value_or(0) & 15);
        m.state = role_of(*state);
        out_.managers.push_back(std::move(m));
    }

    health& out_;
    port_table ports_;
    void (section_reader::*row_)(const table&) = nullptr;
    std::size_t id_ = table::none, major_ = table::none, minor_ = table::none, sub_ = table::none;
    std::size_t board_ = table::none, device_ = table::none;
    std::size_t lid_ = table::none, priority_ = table::none, state_ = table::none;
};

}  // namespace

std::string_view name_of(link_counter c) {
    static constexpr std::string_view names[link_counter_count] = {
        "SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter",
        "PortRcvErrors",      "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors"};
    return names[static_cast<std::size_t>(c)];
}

void take_count(port_errors& p, const std::string& plain, std::string_view value) {
    for (const auto& [name, counter] : counters)
        // A tool may give the short and the long counter: the short one stops at its largest value.
        if (plain == name) p.count[counter] = std::max(p.count[counter], count_of(value));
    if (is_effective_ber(plain))
        p.effective_ber = real_number(value).value_or(0);
    else if (plain == "symbolber")
        p.symbol_ber = real_number(value).value_or(0);
}

subnet_manager::role role_of(std::uint64_t state) {
    return state <= 3 ? static_cast<subnet_manager::role>(state) : subnet_manager::role::inactive;
}

bool port_table::columns(const table& t) {
    auto node = t.column({"nodeguid"});
    if (node == table::none) node = t.column({"guid"});
    const auto own = t.column({"portguid"}), port = t.column({"portnum", "portnumber", "#ib"});
    if (port == table::none || (node == table::none && own == table::none)) return false;
    table_ = t;
    node_ = node;
    own_ = own;
    port_ = port;
    lid_ = t.column({"lid"});
    counted_.clear();
    for (std::size_t i = 0; i < t.names().size(); ++i)
        if (accuses(t.names()[i])) counted_.push_back(i);
    return headed_ = true;
}

bool port_table::head(std::string_view line) {
    const bool dump_ext = line.starts_with("Ty ") && line.find(" : ") != std::string_view::npos;
    if (!dump_ext && line.find(',') == std::string_view::npos) return false;
    if (line.starts_with('#')) line.remove_prefix(1);
    table t;
    t.head(line, dump_ext ? ':' : ',');
    if (!columns(t)) return false;
    dump_ext_ = dump_ext;
    return true;
}

bool port_table::row(std::string_view line, health& out) {
    if (!headed_) return false;
    // The last column of net_dump_ext is a name, which has colons of its own.
    const bool taken = dump_ext_ ? table_.split(line) >= table_.names().size() : table_.row(line);
    if (!taken) return false;
    take(table_, out);
    return true;
}

void port_table::take(const table& t, health& out) const {
    const auto id = hex_number(t[node_]), own = hex_number(t[own_]);
    const auto port = whole_number(t[port_]);
    if ((!id && !own) || !port || *port > UINT16_MAX) {
        ++out.skipped_lines;
        return;
    }
    port_errors p;
    p.id = id ? *id : *own;
    p.port_id = own.value_or(0);
    p.port = static_cast<std::uint16_t>(*port);
    const auto lid = t[lid_];
    p.lid = static_cast<std::uint32_t>(whole_number(lid.substr(0, lid.find(' '))).value_or(0) & 0xffff);
    for (const auto i : counted_) take_count(p, t.names()[i], t[i]);
    out.ports.push_back(std::move(p));
}

bool is_sectioned(std::string_view text) {
    return any_early_line(text, [](std::string_view line) { return line.starts_with("START_"); });
}

result<void> read_health_sections(std::string_view text, health& out) {
    section_reader r(out);
    const auto open = for_each_section(
        text, [&](std::string_view name, const table& t) { return r.begin(name, t); },
        [&](std::uint32_t, const table& t, bool whole) { r.row(t, whole); });
    if (!open.empty())
        return fail(errc::invalid_input,
                    fmt::format("the text is cut: its section {} does not end", open.substr(0, 40)),
                    "copy the whole of ibdiagnet2.db_csv");
    return {};
}

}  // namespace banyan::topo
