// SPDX-License-Identifier: BSD-3-Clause
//
// UFM's event log, the fabric manager's log, NCCL's warnings.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fault/parse/reading.hpp"
#include "fault/sources/kernel_fault.hpp"
#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;
using scan::drop_clock;
using scan::drop_digits;
using scan::take_number;

constexpr std::size_t most_text = 480;

// "2024-06-20 07:46:24[.442]"
bool drop_date_and_clock(std::string_view& text) {
    if (!drop_digits(text, 4, 4) || !drop(text, "-") || !drop_digits(text, 2, 2) || !drop(text, "-") ||
        !drop_digits(text, 2, 2) || !drop(text, " ") || !drop_clock(text))
        return false;
    return !drop(text, ".") || drop_digits(text, 1, 6);
}

// Up to `end`, which is dropped as well.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view end, std::size_t most) {
    const auto at = text.find(end);
    if (at == std::string_view::npos || at > most) return {};
    const auto out = text.substr(0, at);
    text.remove_prefix(at + end.size());
    return out;
}

struct ufm_code {
    std::uint32_t code;
    std::string_view kind;
    precedence weight;
};

// GIDs (64, 65) and what UFM says of itself are no faults; 64 and 65 mean the reverse of the traps' numbers.
constexpr std::array<ufm_code, 22> ufm_codes{{
    {110, "symbol-errors", precedence::alert},
    {112, "link-downed", precedence::alert},
    {113, "receive-errors", precedence::alert},
    {115, "relay-errors", precedence::alert},
    {116, "discards", precedence::alert},
    {328, "link-up", precedence::note},
    {329, "link-down", precedence::alert},
    {331, "node-down", precedence::alert},
    {332, "node-up", precedence::note},
    {394, "switch-failure", precedence::alert},
    {702, "port-unhealthy", precedence::alert},
    {907, "switch-down", precedence::alert},
    {908, "switch-up", precedence::note},
    {917, "bit-errors", precedence::alert},
    {918, "bit-errors", precedence::note},
    {919, "cable-temperature", precedence::alert},
    {920, "cable-temperature", precedence::alert},
    {1500, "cable-new", precedence::note},
    {1501, "cable-gone", precedence::note},
    {1502, "cable-moved", precedence::note},
    {1503, "cable-duplicate", precedence::alert},
    {130, "buffer-overrun", precedence::alert},
}};

// "Link went down: (Switch:NAME:1/17/1)<guid>:33 - (Switch:NAME:1/4/2)<guid>:8, cable S/N: ...": both ends
std::string both_ends(std::string_view message) {
    const auto from = message.find('(');
    if (from == std::string_view::npos) return {};
    message.remove_prefix(from);
    const auto end = message.find(", cable S/N: ");
    return std::string(message.substr(0, std::min<std::size_t>(end, 200)));
}

}  // namespace

std::optional<reading> ufm_line(std::string_view text, bool& form) {
    auto rest = text;
    if (!drop_date_and_clock(rest)) return {};
    const auto time = text.substr(0, text.size() - rest.size());
    if (!drop(rest, " [") || !drop_digits(rest, 1, 12) || !drop(rest, "] [")) return {};
    const auto code = take_number(rest);
    if (!code || !drop(rest, "] ")) return {};
    const auto level = take_until(rest, " [", 16), topic = take_until(rest, "] ", 32),
               type = take_until(rest, " [", 32);
    if (!level || !topic || !type) return {};
    form = true;
    // A description holds names, and these may hold brackets: it ends before ": " or its dev_id.
    auto place = take_until(rest, "] [dev_id: ", 300);
    if (place) {
        if (!take_until(rest, "]: ", 64)) return {};
    } else if (!(place = take_until(rest, "]: ", 300))) {
        return {};
    }
    const auto row = std::ranges::find(ufm_codes, *code, &ufm_code::code);
    if (row == ufm_codes.end()) return {};
    auto out = weighed(row->weight);
    out.source = "ufm";
    out.time = time;
    out.kind = row->kind;
    out.code = *code;
    out.text = text.substr(0, most_text);
    auto where = *place;
    drop(where, "Default / ");
    drop(where, "Default(0) / ");
    drop(where, "Switch: ") || drop(where, "Computer: ");
    const auto port = where.rfind(" / ");
    out.node = where.substr(0, port);
    if (port != std::string_view::npos) out.device = where.substr(port + 3);
    if (*code == 328 || *code == 329) out.device = both_ends(rest);
    return out;
}

std::optional<reading> fabric_manager_line(std::string_view text, bool& form) {
    auto rest = text;
    if (!drop(rest, "[") || rest.size() < 20 || !std::ranges::all_of(rest.substr(0, 3), [](char c) {
            return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        }))
        return {};
    rest.remove_prefix(3);
    if (!drop(rest, " ") || !drop_digits(rest, 1, 2) || !drop(rest, " ") || !drop_digits(rest, 4, 4) ||
        !drop(rest, " ") || !drop_clock(rest))
        return {};
    const auto time = text.substr(1, text.size() - rest.size() - 1);
    if (!drop(rest, "] [") || !take_until(rest, "] [tid ", 12) || !drop_digits(rest, 1, 12) ||
        !drop(rest, "] "))
        return {};
    form = true;
    // "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3
    // port 61"
    if (!drop(rest, "detected NVSwitch ")) return {};
    const bool fatal = drop(rest, "fatal error ");
    if (!fatal && !drop(rest, "non-fatal error ")) return {};
    const auto code = take_number(rest);
    if (!code) return {};
    auto out = weighed(fatal ? precedence::alert : precedence::note);
    out.source = "fabric-manager";
    out.time = time;
    out.kind = "sxid";
    out.code = *code;
    out.text = text.substr(0, most_text);
    constexpr std::string_view mark = " pci bus id ";
    if (const auto at = rest.find(mark); at != std::string_view::npos)
        if (const auto place = take_bdf(rest.substr(at + mark.size()))) out.device = place->first;
    return out;
}

std::optional<reading> nccl_line(std::string_view text, bool& form) {
    auto rest = text;
    std::string_view time;
    if (drop(rest, "[")) {  // NCCL_DEBUG_TIMESTAMP_FORMAT's default
        if (!drop_date_and_clock(rest)) return {};
        time = text.substr(1, text.size() - rest.size() - 1);
        if (!drop(rest, "] ")) return {};
    }
    const auto host = take_until(rest, ":", 255);
    if (!host || host->empty() || host->find(' ') != std::string_view::npos || !drop_digits(rest, 1, 10) ||
        !drop(rest, ":") || !drop_digits(rest, 1, 10) || !drop(rest, " [") || !drop_digits(rest, 1, 5) ||
        !drop(rest, "] "))
        return {};
    // "[transport/net_ib.cc:2244 ]NCCL WARN ..."
    if (!rest.starts_with("NCCL ")) {
        const auto file = take_until(rest, " ", 128);
        if (!file || file->find(':') == std::string_view::npos) return {};
    }
    if (!drop(rest, "NCCL ")) return {};
    form = true;
    if (!drop(rest, "WARN ")) return {};
    auto out = weighed(precedence::app);
    out.source = "nccl";
    out.time = time;
    out.node = *host;
    out.kind = "nccl-warning";
    out.text = text.substr(0, most_text);
    if (drop(rest, "NET/IB : ") || drop(rest, "NET/IB: ")) {
        out.kind = "nccl-network";
        if (drop(rest, "Got completion from peer ")) {
            out.kind = "nccl-completion";
            const auto at = rest.find(" with status=");
            auto status = rest.substr(std::min(at == std::string_view::npos ? at : at + 13, rest.size()));
            if (const auto number = take_number(status)) out.code = *number;
            if (const auto hca = rest.rfind(" hca "); hca != std::string_view::npos)
                out.device = rest.substr(hca + 5, 32);
        } else if (const auto at = rest.find(" Got async event : "); at <= 32) {
            out.kind = "nccl-async-event";
            out.device = rest.substr(0, rest.find(':'));
        }
    } else if (rest.starts_with("Cuda failure ")) {
        out.kind = "nccl-cuda";
    } else if (rest.find(" unhandled cuda error") != std::string_view::npos) {
        out.kind = "nccl-cuda";
    }
    return out;
}

}  // namespace banyan::fault
