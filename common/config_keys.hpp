// SPDX-License-Identifier: BSD-3-Clause
//
// Every key of banyan.conf: its default, its range and what it is for. Reading, checking, --dump-config,
// etc/banyan.conf and the list in banyan.conf(5) all come from this table; nothing else names a default.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace banyan {

enum class config_type : std::uint8_t {
    text,       ///< a string
    node_text,  ///< a string in which %n stands for the node's name
    path,       ///< the same, of a file
    choice,     ///< one of the words of `choices`
    number,     ///< a whole number from `min` to `max`
    flag,       ///< true or false
    duration,   ///< a string such as "250ms" or "5m"
    size,       ///< a string such as "64M" or "1.5G"
    list,       ///< of strings, at least `min`
};

struct config_key {
    std::string_view table;
    std::string_view name;
    config_type type;
    std::string_view fallback;  ///< as it would stand in the file
    std::string_view about;     ///< whole sentences, "NAME(SECTION)" for a manual page
    std::int64_t min = 0, max = 0;
    std::string_view choices{};  ///< words between blanks
};

struct config_table {
    std::string_view name;
    std::string_view readers;  ///< who reads it, as a sentence
};

std::span<const config_table> config_tables();
/// Those of one table stand together, in the order of config_tables().
std::span<const config_key> config_keys();
/// Null when there is none.
const config_key* find_config_key(std::string_view table, std::string_view name);

}  // namespace banyan
