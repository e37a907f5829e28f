// SPDX-License-Identifier: BSD-3-Clause
//
// Rows for a spreadsheet (RFC 4180).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::topo::cli {

/// The character at the beginning, as UTF-8 has it; 0 where there is none.
inline std::uint32_t first_character(std::string_view text) {
    if (text.empty()) return 0;
    const auto byte = [&](std::size_t i) -> std::uint32_t {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    };
    if (byte(0) < 0xc0) return byte(0);
    if (byte(0) < 0xe0) return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    if (byte(0) < 0xf0) return (byte(0) & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    return (byte(0) & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
}

/// Whether a spreadsheet may take what begins so for a formula: =, +, -, @ and control characters, and, since
/// some make the plain form of a sign before they look at it, all that is a sign and no letter elsewhere:
/// full width and small forms, other hyphens and minuses, blanks and marks that are not seen.
inline bool may_begin_formula(std::uint32_t c) {
    struct range {
        std::uint32_t first, last;
    };
    static constexpr range signs[] = {{0x00, 0x1f},     {'+', '+'},       {'-', '-'},       {'=', '='},
                                      {'@', '@'},       {0x7f, 0xbf},     {0x2b0, 0x36f},   {0x2000, 0x2bff},
                                      {0x3000, 0x303f}, {0xfe00, 0xfe6f}, {0xfeff, 0xff20}, {0xfff0, 0xffff}};
    return std::any_of(std::begin(signs), std::end(signs),
                       [c](const range& r) { return c >= r.first && c <= r.last; });
}

/// A cell: in quotes where it has to be, and never a formula. Node names are whatever a host says of itself:
/// an apostrophe in front makes text of them.
inline std::string csv_cell(const std::string& text) {
    std::string out;
    const auto start = text.find_first_not_of(' ');
    if (start != std::string::npos &&
        may_begin_formula(first_character(std::string_view(text).substr(start))))
        out += '\'';
    out += text;
    if (out.find_first_of(",\"\r\n") == std::string::npos) return out;
    std::string quoted = "\"";
    for (const char c : out) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
}

inline std::string csv_row(const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) out += (i == 0 ? "" : ",") + csv_cell(cells[i]);
    return out + "\r\n";
}

}  // namespace banyan::topo::cli
