// SPDX-License-Identifier: BSD-3-Clause
//
// The forms of a dump. Each reader fills `out` from its text; what it cannot read is in out.complaints.
#pragma once

#include <string_view>

#include <banyan/topo/reader.hpp>

namespace banyan::topo {

/// ibnetdiscover's plain form. Returns how many lines carry the marks of --diff ("< ", "> ").
std::size_t read_records(std::string_view text, dump& out);
/// The form of ibnetdiscover -p.
void read_port_list(std::string_view text, dump& out);
/// What iblinkinfo prints. Returns how many links lead to a node that is not in the text.
std::size_t read_link_info(std::string_view text, dump& out);
/// ibdiagnet2.db_csv. Returns the name of a section that does not end or is needed and not
/// there; else an empty text.
std::string_view read_db_csv(std::string_view text, dump& out);
/// ibdiagnet2.lst.
void read_link_list(std::string_view text, dump& out);
/// Slurm's own files.
result<void> read_topology_conf(std::string_view text, dump& out);
result<void> read_topology_yaml(std::string_view text, dump& out);
/// lldpcli's form keyvalue, of many systems.
result<void> read_lldp(std::string_view text, dump& out);
/// opareport -o links, and opaextractsellinks.
result<void> read_omni_path(std::string_view text, dump& out);
/// UFM's list of links.
result<void> read_ufm_links(std::string_view text, dump& out);

/// Whether the text has a line that ibnetdiscover -p prints.
bool is_port_list(std::string_view text);
bool is_link_info(std::string_view text);
bool is_link_list(std::string_view text);
bool is_topology_conf(std::string_view text);
bool is_topology_yaml(std::string_view text);
bool is_lldp(std::string_view text);
bool is_omni_path(std::string_view text);
bool is_ufm_links(std::string_view text);

/// Notes what is wrong with a line. A binary file does not fill the memory with complaints about itself.
void complain(dump& out, std::uint32_t line, std::uint32_t column, std::string what);

/// Calls `take(number, line)` for every line, without its end (LF or CRLF) and trailing blanks.
template <class Take>
void for_each_line(std::string_view text, Take take) {
    std::uint32_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = text.find('\n', at);
        auto line = text.substr(at, end == std::string_view::npos ? end : end - at);
        at = end == std::string_view::npos ? text.size() : end + 1;
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
            line.remove_suffix(1);
        take(++number, line);
    }
}

/// Whether `is(line)` holds for a line of the text's beginning.
template <class Is>
bool any_early_line(std::string_view text, Is is) {
    bool found = false;
    for_each_line(text.substr(0, 65536),
                  [&](std::uint32_t, std::string_view line) { found = found || is(line); });
    return found;
}

}  // namespace banyan::topo
