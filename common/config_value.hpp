// SPDX-License-Identifier: BSD-3-Clause
//
// A node of a TOML file as the value that a key's type asks for. Internal to config.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <toml++/toml.h>

#include "common/config_keys.hpp"

namespace banyan {

// Nothing when the node is no such value, or out of the key's range.
std::optional<std::string> text_of(const toml::node& node, const config_key& key);
std::optional<std::uint64_t> number_of(const toml::node& node, const config_key& key);
std::optional<std::chrono::milliseconds> duration_of(const toml::node& node, const config_key& key);
std::optional<bool> flag_of(const toml::node& node, const config_key& key);
std::optional<std::vector<std::string>> list_of(const toml::node& node, const config_key& key);

bool is_right(const toml::node& node, const config_key& key);
/// What the key wants, for "... is not ...".
std::string expected(const config_key& key);

}  // namespace banyan
