// SPDX-License-Identifier: BSD-3-Clause
//
// One pass over the lines: each is taken by the tool whose mark it bears, so that outputs may stand one after
// another in a file.
#include <banyan/topo/health.hpp>
#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/cursor.hpp"
#include "topo/readers/disarm.hpp"
#include "topo/readers/health_tables.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

class line_health {
  public:
    explicit line_health(health& out) : out_(out) {}

    void line(std::string_view text) {
        const auto bare = trim(text);
        if (bare.empty()) return;
        if (table_.row(text, out_)) return;
        if (manager(bare) || perfquery(bare) || queryerrors(bare)) {
            known_ = true;
        } else if (table_.head(text)) {
            known_ = true;
            out_.counters_told = true;
        } else {
            ++unknown_;
        }
    }
    bool known() const { return known_; }
    std::size_t unknown() const { return unknown_; }

  private:
    // sminfo: sm lid 1 sm guid 0xa088c20200000001, activity count 8676 priority 14 state 3 SMINFO_MASTER
    bool manager(std::string_view text) {
        cursor c(text);
        if (c.skip("sminfo: sm lid ")) {
            subnet_manager m;
            m.lid = c.number<std::uint32_t>().value_or(0);
            if (c.skip(" sm guid 0x")) m.id = c.number<guid>(16).value_or(0);
            m.priority = static_cast<std::uint8_t>(number_after(text, " priority ").value_or(0) & 15);
            m.state = role_of(number_after(text, " state ").value_or(0));
            out_.managers.push_back(std::move(m));
            return true;
        }
        // saquery SMIR: a record of lines "NAME......VALUE".
        if (text == "SMInfoRecord dump:") {
            out_.managers.emplace_back();
            out_.managers_listed = in_record_ = true;
            return true;
        }
        if (!in_record_) return false;
        if (text == "RID" || text == "SMInfo dump:") return true;
        const auto value = text.find_last_of('.') + 1;
        const auto name = text.substr(0, text.find('.'));
        auto& m = out_.managers.back();
        const auto number = value > 0 ? whole_number(text.substr(value)) : std::nullopt;
        if (!number) return in_record_ = false;
        if (name == "LID")
            m.lid = static_cast<std::uint32_t>(*number & 0xffff);
        else if (name == "GUID")
            m.id = *number;
        else if (name == "Priority")
            m.priority = static_cast<std::uint8_t>(*number & 15);
        else if (name == "SMState")
            m.state = role_of(*number);
        return true;
    }

    // # Port counters: Lid 6 port 1 (CapMask: 0x1200)      SymbolErrorCounter:..............0
    bool perfquery(std::string_view text) {
        if (text.starts_with("# Port ") && text.find("ounters: ") != std::string_view::npos) {
            const auto lid = number_after(text, " Lid "), port = number_after(text, " port ");
            current_ = none;
            out_.counters_told = true;
            // 255 stands for all ports together.
            if (!lid || !port || *port == 255 || *port > UINT16_MAX) return true;
            port_errors p;
            p.lid = static_cast<std::uint32_t>(*lid & 0xffff);
            p.port = static_cast<std::uint16_t>(*port);
            current_ = out_.ports.size();
            out_.ports.push_back(std::move(p));
            return true;
        }
        const auto colon = text.find(":.");
        if (colon == std::string_view::npos || text.find(' ') < colon) return false;
        const auto value = text.find_last_of('.') + 1;
        if (current_ != none)
            take_count(out_.ports[current_], plain_name(text.substr(0, colon)), text.substr(value));
        return true;
    }

    // Errors for 0xfc6a1c0300000040 "leaf-01"      GUID 0xfc6a1c0300000040 port 3: [SymbolErrorCounter ==
    // 240]
    bool queryerrors(std::string_view text) {
        if (text.starts_with("Errors for ")) {
            const auto open = text.find('"'), close = text.rfind('"');
            name_ = open < close ? text.substr(open + 1, close - open - 1) : std::string_view();
            return true;
        }
        if (text.starts_with("## Summary:") || text.starts_with("##  ")) {
            out_.counters_told = true;
            return true;
        }
        if (text.starts_with("## ") || text.starts_with("Link info:")) return true;
        cursor c(text);
        if (!c.skip("GUID 0x")) return false;
        const auto id = c.number<guid>(16);
        if (!id || !c.skip(" port ")) return false;
        out_.counters_told = true;
        if (c.skip("ALL:")) return true;
        const auto port = c.number<std::uint16_t>();
        if (!port || !c.skip(":")) return false;
        port_errors p;
        p.id = *id;
        p.port = *port;
        p.name = name_;
        for (auto rest = c.rest(); !rest.empty();) {
            const auto open = rest.find('['), close = rest.find(']', open);
            if (open == std::string_view::npos || close == std::string_view::npos) break;
            const auto one = rest.substr(open + 1, close - open - 1);
            rest.remove_prefix(close + 1);
            const auto equals = one.find(" == ");
            if (equals == std::string_view::npos) continue;
            const auto value = one.substr(equals + 4);
            take_count(p, plain_name(one.substr(0, equals)), value.substr(0, value.find(' ')));
        }
        out_.ports.push_back(std::move(p));
        return true;
    }

    static std::optional<std::uint64_t> number_after(std::string_view text, std::string_view word) {
        const auto at = text.find(word);
        return at == std::string_view::npos ? std::nullopt
                                            : cursor(text.substr(at + word.size())).number<std::uint64_t>();
    }

    static constexpr std::size_t none = SIZE_MAX;
    health& out_;
    port_table table_;
    std::size_t current_ = none;
    bool in_record_ = false, known_ = false;
    std::size_t unknown_ = 0;
    std::string_view name_;
};

}  // namespace

result<void> read_health(std::string text, health& out) {
    if (text.size() > max_health_bytes)
        return fail(errc::invalid_input, fmt::format("the text is larger than {} bytes", max_health_bytes));
    disarm(text);
    if (is_sectioned(text)) return read_health_sections(text, out);
    line_health r(out);
    for_each_line(text, [&](std::uint32_t, std::string_view line) { r.line(line); });
    if (!r.known())
        return fail(
            errc::invalid_input, "nothing in the text tells of counters, firmware or subnet managers",
            "give the output of ibqueryerrors, perfquery, sminfo or saquery SMIR, ibdiagnet2.db_csv or "
            ".net_dump_ext, or a CSV of UFM's telemetry");
    out.skipped_lines += r.unknown();
    return {};
}

}  // namespace banyan::topo
