// SPDX-License-Identifier: BSD-3-Clause
//
// Rows for a spreadsheet (RFC 4180).
#pragma once

#include <string>
#include <vector>

namespace banyan::topo::cli {

/// A cell: in quotes where it has to be, and never a formula. Node names are whatever a host says of itself,
/// and a spreadsheet runs what begins with =, +, -, @ or a control character: an apostrophe in front makes
/// text of it.
inline std::string csv_cell(const std::string& text) {
    std::string out;
    if (!text.empty() && std::string("=+-@\t\r\n").find(text[0]) != std::string::npos) out += '\'';
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
