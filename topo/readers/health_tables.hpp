// SPDX-License-Identifier: BSD-3-Clause
//
// Counters, firmware and subnet managers as tables: of ibdiagnet and of UFM.
#pragma once

#include <string>
#include <string_view>

#include <banyan/topo/health.hpp>

#include "topo/readers/csv.hpp"

namespace banyan::topo {

/// Keeps the value if the plain name is that of a counter or a rate that accuses a link.
void take_count(port_errors& p, const std::string& plain, std::string_view value);

subnet_manager::role role_of(std::uint64_t state);

/// A table with a row for each port: a CSV of UFM's telemetry, or ibdiagnet's net_dump_ext.
class port_table {
  public:
    /// Takes the line of names; false where it names no port and node.
    bool head(std::string_view line);
    /// False where there was no line of names yet, or the line is no row.
    bool row(std::string_view line, health& out);
    /// The columns of a table whose names were read already; false where it names no port and node.
    bool columns(const table& t);
    void take(const table& t, health& out) const;

  private:
    bool headed_ = false, dump_ext_ = false;
    table table_;
    std::size_t node_ = table::none, own_ = table::none, port_ = table::none, lid_ = table::none;
    std::vector<std::size_t> counted_;  ///< columns that accuse a link
};

/// Whether the text begins with a section of ibdiagnet's db_csv.
bool is_sectioned(std::string_view text);
result<void> read_health_sections(std::string_view text, health& out);

}  // namespace banyan::topo
