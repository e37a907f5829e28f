// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/opensm_log.hpp"

#include <cctype>
#include <utility>

#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t max_text = 400;

// "Nov 21 02:25:41 541466 [69D3740] 0x03 -> " from the front.
bool drop_head(std::string_view& line) {
    if (line.size() < 20 || !std::isalpha(static_cast<unsigned char>(line[0])) || line[3] != ' ')
        return false;
    const auto thread = line.find('[');
    if (thread == std::string_view::npos || thread > 40) return false;
    const auto level = line.find("] 0x", thread);
    const auto arrow = line.find(" -> ", thread);
    if (level == std::string_view::npos || arrow == std::string_view::npos || level > thread + 32 ||
        arrow < level || arrow > level + 12)
        return false;
    line.remove_prefix(arrow + 4);
    return true;
}

std::optional<std::uint64_t> hex_after(std::string_view text, std::string_view mark) {
    const auto at = text.find(mark);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + mark.size());
    return scan::take_hex_long(text);
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

std::optional<opensm_event> understand(std::string_view text) {
    opensm_event out;
    if (text.find("Received Generic Notice") != std::string_view::npos) {
        if (text.find("num:128 ") == std::string_view::npos) return {};
        out.kind = opensm_kind::link_trap;
        out.lid = number_after(text, "from LID:").value_or(0);
        return out;
    }
    if (text.find("Removed port with GUID:") != std::string_view::npos)
        return port_change(text, opensm_kind::removed);
    if (text.find("Discovered new port with GUID:") != std::string_view::npos)
        return port_change(text, opensm_kind::discovered);
    if (text.ends_with("SUBNET UP")) return out;
    return {};
}

}  // namespace

std::optional<opensm_event> opensm_parser::line(std::string_view text) {
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.starts_with('\t')) {
        auto waiting = std::exchange(unlink_, std::nullopt);
        const auto guid = hex_after(text, "remote node 0x");
        const auto port = number_after(text, "port ");
        if (!waiting || !guid || !port) return {};
        waiting->remote_guid = *guid;
        waiting->remote_port = *port;
        return waiting;
    }
    unlink_.reset();
    if (text.empty()) return {};
    const auto whole = text;
    if (!drop_head(text)) {
        ++not_understood_;
        return {};
    }
    if (const auto guid = hex_after(text, "Unlinking local node 0x")) {
        opensm_event out;
        out.kind = opensm_kind::unlinked;
        out.guid = *guid;
        out.port = number_after(text, "port ").value_or(0);
        out.text = whole.substr(0, max_text);
        unlink_ = std::move(out);
        return {};
    }
    auto out = understand(text);
    if (out) out->text = whole.substr(0, max_text);
    return out;
}

}  // namespace banyan::fault
