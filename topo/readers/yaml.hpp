// SPDX-License-Identifier: BSD-3-Clause
//
// The part of YAML in which topology.yaml is written: maps and lists by indentation, lists in brackets,
// words and quoted texts of one line, comments. All else (anchors, tags, maps in braces, texts of several
// lines) is refused with its line. Read here, and not by a library, since slurmctld loads this code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::topo {

struct yaml_value {
    enum class kind : std::uint8_t { text, map, list } is = kind::text;
    std::uint32_t line = 0;
    std::string text;               ///< empty where the file has no value
    std::vector<std::string> keys;  ///< of a map: one for each of the items
    std::vector<yaml_value> items;

    /// nullptr where it has no such key.
    const yaml_value* find(std::string_view key) const;
};

constexpr std::size_t max_yaml_bytes = std::size_t{64} << 20;

/// One document.
result<yaml_value> read_yaml(std::string_view text);

}  // namespace banyan::topo
