// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/ufm_log.hpp"

#include <algorithm>
#include <array>

#include "common/text.hpp"
#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;
using scan::drop_digits;
using scan::take_number;
using scan::take_until;

constexpr std::size_t most_text = 480, most_device_name = 128;

struct ufm_code {
    std::uint32_t code;
    std::string_view kind;
    precedence weight;
    bool changes_fabric;
};

// GIDs (64, 65) and what UFM says of itself are no faults; 64 and 65 mean the reverse of the traps' numbers.
constexpr std::array<ufm_code, 22> ufm_codes{{
    {110, "symbol-errors", precedence::alert, false},
    {112, "link-downed", precedence::alert, false},
    {113, "receive-errors", precedence::alert, false},
    {115, "relay-errors", precedence::alert, false},
    {116, "discards", precedence::alert, false},
    {328, "link-up", precedence::note, true},
    {329, "link-down", precedence::alert, true},
    {331, "node-down", precedence::alert, true},
    {332, "node-up", precedence::note, true},
    {394, "switch-failure", precedence::alert, false},
    {702, "port-unhealthy", precedence::alert, false},
    {907, "switch-down", precedence::alert, true},
    {908, "switch-up", precedence::note, true},
    {917, "bit-errors", precedence::alert, false},
    {918, "bit-errors", precedence::note, false},
    {919, "cable-temperature", precedence::alert, false},
    {920, "cable-temperature", precedence::alert, false},
    {1500, "cable-new", precedence::note, false},
    {1501, "cable-gone", precedence::note, false},
    {1502, "cable-moved", precedence::note, false},
    {1503, "cable-duplicate", precedence::alert, false},
    {130, "buffer-overrun", precedence::alert, false},
}};

const ufm_code* find_code(std::uint32_t code) {
    const auto it = std::ranges::find(ufm_codes, code, &ufm_code::code);
    return it == ufm_codes.end() ? nullptr : &*it;
}

// "(Switch:NAME:1/17/1)<guid>:33" from the front: a name may hold anything but what ends it.
std::optional<named_port> take_end(std::string_view& text) {
    if (!drop(text, "(") || !take_until(text, ")", 200)) return {};
    drop(text, "0x");
    const auto guid = scan::take_hex_long(text);
    if (!guid || !drop(text, ":")) return {};
    const auto port = take_number(text);
    if (!port) return {};
    return named_port{*guid, *port};
}

// "Link went down: (Switch:NAME:1/17/1)<guid>:33 - (Switch:NAME:1/4/2)<guid>:8, cable S/N: MT123"
void read_ends(std::string_view message, ufm_event& out) {
    const auto from = message.find('(');
    if (from == std::string_view::npos) return;
    message.remove_prefix(from);
    constexpr std::string_view mark = ", cable S/N: ";
    const auto end = message.find(mark);
    out.ends = message.substr(0, std::min<std::size_t>(end, 200));
    if (end != std::string_view::npos) {
        const auto serial = message.substr(end + mark.size());
        out.cable = serial.substr(0, std::min<std::size_t>(serial.find_first_of(" ,;"), 32));
    }
    const auto one = take_end(message);
    if (!one || !drop(message, " - ")) return;
    if (const auto other = take_end(message)) out.ports = {*one, *other};
}

// "Default / Switch: T3-E13 / 1/17/1"
void read_place(std::string_view where, ufm_event& out) {
    drop(where, "Default / ") || drop(where, "Default(0) / ");
    drop(where, "Switch: ") || drop(where, "Computer: ");
    const auto port = where.rfind(" / ");
    out.node = where.substr(0, std::min(port, most_device_name));
    if (port != std::string_view::npos) out.port = where.substr(port + 3, 64);
}

}  // namespace

bool ufm_event::changes_fabric() const {
    const auto* row = find_code(code);
    return row && row->changes_fabric;
}

std::uint32_t ufm_event::port_number() const {
    constexpr std::uint32_t most = 254;
    std::vector<std::uint32_t> numbers;
    for (const auto part : split(std::string_view(port).substr(port.rfind(' ') + 1), '/')) {
        const auto n = parse_number(part, most);
        if (!n) return 0;
        numbers.push_back(static_cast<std::uint32_t>(*n));
    }
    if (numbers.empty() || numbers.size() > 3) return 0;
    if (numbers.size() < 3) return numbers.back();
    const auto cage = numbers[1], of_cage = numbers[2];
    const auto out = of_cage == 1 || of_cage == 2 ? (cage - 1) * 2 + of_cage : 0;
    return cage == 0 || out > most ? 0 : out;
}

std::optional<ufm_event> ufm_line(std::string_view text, bool* form) {
    auto rest = text;
    if (!scan::drop_date_and_clock(rest)) return {};
    const auto time = text.substr(0, text.size() - rest.size());
    if (!drop(rest, " [") || !drop_digits(rest, 1, 12) || !drop(rest, "] [")) return {};
    const auto code = take_number(rest);
    if (!code || !drop(rest, "] ")) return {};
    const auto level = take_until(rest, " [", 16), topic = take_until(rest, "] ", 32),
               type = take_until(rest, " [", 32);
    if (!level || !topic || !type) return {};
    if (form) *form = true;
    ufm_event out;
    // A description holds names, and these may hold brackets: it ends before ": " or its dev_id.
    auto place = take_until(rest, "] [dev_id: ", 300);
    if (place) {
        const auto id = take_until(rest, "]: ", 64);
        if (!id) return {};
        auto number = *id;
        drop(number, "0x");
        out.guid = scan::take_hex_long(number).value_or(0);
    } else if (!(place = take_until(rest, "]: ", 300))) {
        return {};
    }
    const auto* row = find_code(*code);
    if (!row) return {};
    out.code = *code;
    out.kind = row->kind;
    out.weight = row->weight;
    out.time = time;
    out.text = text.substr(0, most_text);
    read_place(*place, out);
    if (*code == 328 || *code == 329) read_ends(rest, out);
    return out;
}

}  // namespace banyan::fault
