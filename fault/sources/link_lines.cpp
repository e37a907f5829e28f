// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/link_lines.hpp"

#include <algorithm>
#include <cctype>

#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;

// "0x004505c6", with `least` to eight digits.
std::optional<std::uint32_t> take_register(std::string_view& text, std::size_t least) {
    if (!drop(text, "0x")) return {};
    const auto digits = std::min(text.find_first_not_of("0123456789abcdefABCDEF"), text.size());
    if (digits < least || digits > 8) return {};
    return scan::take_hex_number(text);
}

/// Up to the ")" that ends the line.
std::optional<std::vector<std::uint32_t>> take_registers(std::string_view text, std::string_view between,
                                                         std::size_t least_digits) {
    std::vector<std::uint32_t> out;
    for (;;) {
        const auto word = take_register(text, least_digits);
        if (!word || out.size() == most_registers) return {};
        out.push_back(*word);
        if (text == ")") return out;
        if (!drop(text, between)) return {};
    }
}

std::string_view take_last_word(std::string_view& text) {
    const auto end = text.find_last_not_of(' ');
    text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
    const auto begin = text.find_last_of(' ') + 1;
    const auto out = text.substr(begin);
    text = text.substr(0, begin);
    return out;
}

bool is_number(std::string_view text) {
    return !text.empty() && text.size() <= 4 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "UNIT Fatal|Nonfatal XC0 i0 Link 12 ", read from its end, which no process's name reaches.
std::optional<std::string> unit_before_link(std::string_view text) {
    if (!text.ends_with(' ')) return {};
    auto link = take_last_word(text);
    drop(link, "-");
    if (!is_number(link) || take_last_word(text) != "Link") return {};
    auto injected = take_last_word(text), contained = take_last_word(text);
    if (!drop(injected, "i") || !is_number(injected) || !drop(contained, "XC") || !is_number(contained))
        return {};
    const auto severity = take_last_word(text);
    if (severity != "Fatal" && severity != "Nonfatal") return {};
    if (const auto comma = text.rfind(", "); comma != std::string_view::npos) text.remove_prefix(comma + 2);
    const auto end = text.find_last_not_of(' ');
    if (end >= longest_unit) return {};  // npos too
    text = text.substr(0, end + 1);
    const bool plain =
        std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == ' '; });
    return plain ? std::optional(std::string(text)) : std::nullopt;
}

}  // namespace

std::optional<link_registers> registers_in(std::uint32_t xid, std::string_view message) {
    constexpr std::size_t of_74 = 7;
    const auto open = message.rfind('(');
    if (open == std::string_view::npos) return {};
    const auto inside = message.substr(open + 1), before = message.substr(0, open);
    link_registers out;
    if (xid == 74) {
        auto words = take_registers(inside, ", ", 1);
        if (!words || words->size() != of_74) return {};
        out.words = std::move(*words);
        return out;
    }
    auto words = take_registers(inside, " ", 8);
    auto unit = unit_before_link(before);
    if (!words || words->size() < 2 || !unit) return {};
    out.unit = std::move(*unit);
    out.words = std::move(*words);
    return out;
}

std::optional<std::uint32_t> driver_branch_in(std::string_view text) {
    constexpr std::string_view mark = "Kernel Module";
    const auto at = text.find(mark);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + mark.size());
    drop(text, " for x86_64") || drop(text, " for aarch64");
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto branch = scan::take_number(text);
    if (!branch || *branch == 0 || *branch > 9'999 || !drop(text, ".")) return {};
    return branch;
}

}  // namespace banyan::fault
