// SPDX-License-Identifier: BSD-3-Clause
#include <set>

#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/cursor.hpp"
#include "topo/readers/disarm.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

/// Two plain words.
std::optional<std::pair<std::string, std::string>> host_and_node(std::string_view line) {
    if (line.starts_with("0x") || line.find('"') != line.npos) return std::nullopt;
    const auto blank = line.find_first_of(" \t");
    if (blank == line.npos) return std::nullopt;
    std::pair out{std::string(line.substr(0, blank)), std::string(trim(line.substr(blank)))};
    if (out.second.find_first_of(" \t") != out.second.npos) return std::nullopt;
    disarm(out.first), disarm(out.second);
    return out;
}

}  // namespace

result<name_map> read_name_map(std::string_view text) {
    name_map out;
    std::optional<error> first;
    std::set<std::string> hosts, nodes;
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        line = trim(line.substr(0, line.find('#')));
        if (line.empty() || first) return;
        if (const auto pair = host_and_node(line)) {
            if (!hosts.insert(pair->first).second || !nodes.insert(pair->second).second)
                first = error{errc::invalid_input,
                              fmt::format("line {}: {} or {} stands in an earlier line already", number,
                                          pair->first, pair->second),
                              "a host has one node, and a node one host"};
            return void(out.nodes.push_back(*pair));
        }
        cursor c(line);
        c.skip("0x");
        const auto id = c.number<guid>(16);
        c.blanks();
        const auto quoted = c.rest();
        if (!id || quoted.size() < 3 || quoted.front() != '"' || quoted.back() != '"') {
            first = error{
                errc::invalid_input,
                fmt::format("line {}: \"{}\" is neither a GUID with a quoted name nor a host with its node",
                            number, line.substr(0, 60)),
                "write lines such as: 0x0002c90300002f78 \"gpu0001 mlx5_0\", or: rack1-07 gpu0001"};
            return;
        }
        auto& name = out.descriptions[*id];
        name = quoted.substr(1, quoted.size() - 2);
        disarm(name);
    });
    if (first) return std::unexpected(*first);
    return out;
}

}  // namespace banyan::topo
