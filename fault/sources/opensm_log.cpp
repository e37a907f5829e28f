// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/opensm_log.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t max_line = 400;
constexpr std::array<std::string_view, 4> manager_states{"Entering MASTER state", "Entering STANDBY state",
                                                         "Entering DISCOVERING state",
                                                         "ENTERING STANDBY STATE"};

bool drop_number(std::string_view& text) {
    const auto n = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(n);
    return n > 0;
}

// "Nov 21 02:25:41 541466 [69D3740] 0x03 -> " from the front.
bool drop_head(std::string_view& line) {
    using scan::drop;
    constexpr std::string_view months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ";
    if (line.size() < 20 || months.find(line.substr(0, 4)) % 4 != 0) return false;
    auto rest = line.substr(4);
    drop(rest, " ");
    if (!drop_number(rest) || !drop(rest, " ") || !drop_number(rest) || !drop(rest, ":") ||
        !drop_number(rest) || !drop(rest, ":") || !drop_number(rest) || !drop(rest, " ") ||
        !drop_number(rest) || !drop(rest, " [") || !scan::take_hex_long(rest) || !drop(rest, "] 0x") ||
        !scan::take_hex_number(rest) || !drop(rest, " -> "))
        return false;
    line = rest;
    return true;
}

// "drop_mgr_remove_port: " from the front, where there is one.
void drop_function(std::string_view& text) {
    const auto end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789");
    if (end == 0 || end == std::string_view::npos || !text.substr(end).starts_with(": ")) return;
    text.remove_prefix(end + 2);
}

std::optional<std::uint64_t> hex_after(std::string_view text, std::string_view mark) {
    const auto at = text.find(mark);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + mark.size());
    return scan::take_hex_long(text);
}

std::optional<std::uint64_t> hex_at_start(std::string_view text, std::string_view mark) {
    return scan::drop(text, mark) ? scan::take_hex_long(text) : std::nullopt;
}

std::optional<std::uint32_t> number_after(std::string_view text, std::string_view mark) {
    const auto at = text.find(mark);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + mark.size());
    return scan::take_number(text);
}

// "... GUID:0x<hex> LID range [24, 24] of node:NAME": a name holds blanks, ';' and '/', so it is all that is
// left.
std::optional<opensm_event> port_change(std::string_view text, opensm_kind kind) {
    opensm_event out;
    out.kind = kind;
    const auto guid = hex_after(text, "GUID:0x");
    const auto at = text.find(" of node:");
    if (!guid || at == std::string_view::npos) return {};
    out.guid = *guid;
    auto name = text.substr(at + 9);
    scan::drop(name, " ");
    out.node = name.substr(0, 128);
    return out;
}

// "0x<hex> NAME port 61 (sw7p1s1) changed state from ACTIVE to DOWN", after "Switch ": taken from its end,
// since a name holds anything. The label in brackets is there on NVLink switches only.
std::optional<opensm_event> port_state(std::string_view text) {
    opensm_event out;
    const auto guid = hex_at_start(text, "0x");
    auto at = text.rfind(" changed state from ");
    if (!guid || at == std::string_view::npos) return {};
    auto states = text.substr(at + 20);
    text = text.substr(0, at);
    const auto to = states.find(" to ");
    if (to == std::string_view::npos) return {};
    const auto before = states.substr(0, to), after = states.substr(to + 4);
    if (before == after) return {};
    if (after == "DOWN")
        out.kind = opensm_kind::port_down;
    else if (after == "ACTIVE")
        out.kind = opensm_kind::port_up;
    else
        return {};
    if (text.ends_with(')')) text = text.substr(0, text.rfind(" ("));
    at = text.rfind(" port ");
    const auto blank = text.find(' ');
    if (at == std::string_view::npos || blank > at) return {};
    auto number = text.substr(at + 6);
    const auto port = scan::take_number(number);
    if (!port || !number.empty()) return {};
    out.guid = *guid;
    out.port = *port;
    out.node = text.substr(std::min(blank + 1, at), at - std::min(blank + 1, at)).substr(0, 128);
    return out;
}

// A message is taken from its first byte on: a host's administrator chooses the node descriptions that other
// messages quote.
std::optional<opensm_event> understand(std::string_view text) {
    opensm_event out;
    if (text == "SUBNET UP") return out;
    if (text == "Exiting SM") {
        out.kind = opensm_kind::manager_ends;
        return out;
    }
    if (std::ranges::find(manager_states, text) != manager_states.end()) {
        out.kind = opensm_kind::manager_state;
        return out;
    }
    drop_function(text);
    if (scan::drop(text, "Received Generic Notice type:")) {
        if (!scan::take_number(text) || !scan::drop(text, " num:128 ")) return {};
        out.kind = opensm_kind::link_trap;
        out.lid = number_after(text, "from LID:").value_or(0);
        return out;
    }
    if (scan::drop(text, "Switch ")) return port_state(text);
    if (text.starts_with("Removed port with GUID:")) return port_change(text, opensm_kind::removed);
    if (text.starts_with("Discovered new port with GUID:")) return port_change(text, opensm_kind::discovered);
    return {};
}

}  // namespace

bool opensm_parser::has_head(std::string_view line) { return drop_head(line); }

std::optional<opensm_event> opensm_parser::line(std::string_view text) {
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.starts_with('\t') || text.starts_with(' ')) {
        auto waiting = std::exchange(unlink_, std::nullopt);
        text.remove_prefix(std::min(text.find_first_not_of("\t "), text.size()));
        if (!scan::drop(text, "and ")) return {};
        const auto guid = hex_at_start(text, "remote node 0x");
        const auto port = number_after(text, "port ");
        if (!waiting || !guid || !port) return {};
        waiting->remote_guid = *guid;
        waiting->remote_port = *port;
        return waiting;
    }
    unlink_.reset();
    if (text.empty()) return {};
    const auto whole = text;
    if (!drop_head(text)) return {};
    auto message = text;
    drop_function(message);
    if (const auto guid = hex_at_start(message, "Unlinking local node 0x")) {
        opensm_event out;
        out.kind = opensm_kind::unlinked;
        out.guid = *guid;
        out.port = number_after(text, "port ").value_or(0);
        out.text = whole.substr(0, max_line);
        unlink_ = std::move(out);
        return {};
    }
    auto out = understand(text);
    if (out) out->text = whole.substr(0, max_line);
    return out;
}

}  // namespace banyan::fault
