// SPDX-License-Identifier: BSD-3-Clause
//
// The sections of ibdiagnet's db_csv: START_NAME, a line of column names, rows, END_NAME.
#pragma once

#include <string_view>

#include "topo/readers/csv.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {

/// Calls `begin(name, table)` for each section, with its columns, and `row(line number, table, whole)` for
/// each row of a section for which that returned true; `whole` is false where the row lacks fields. Returns
/// the name of a section that does not end, or an empty text.
template <class Begin, class Row>
std::string_view for_each_section(std::string_view text, Begin begin, Row row) {
    std::string_view open;
    bool wanted = false, headed = false;
    table t;
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        if (line.empty()) return;
        if (open.empty()) {
            if (!line.starts_with("START_")) return;
            open = line.substr(6);
            headed = false;
        } else if (line.starts_with("END_") && line.substr(4) == open) {
            open = {};
        } else if (!headed) {
            t.head(line, ',');
            headed = true;
            wanted = begin(open, t);
        } else if (wanted) {
            const bool whole = t.row(line);
            row(number, t, whole);
        }
    });
    return open;
}

}  // namespace banyan::topo
