// SPDX-License-Identifier: BSD-3-Clause
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "common/config.hpp"
#include "common/config_keys.hpp"

namespace banyan {
namespace {

/// In quotes on one line, whatever stands in it.
std::string toml_of(const std::string& text) {
    std::ostringstream out;
    out << toml::toml_formatter{toml::value<std::string>(text), toml::format_flags::none};
    return out.str();
}

}  // namespace

config_text::config_text(std::string_view table) : table_(table), text_(fmt::format("[{}]\n", table)) {}

void config_text::field(std::string_view key, const std::string& value) {
    text_ += fmt::format("{} = {}\n", key, toml_of(value));
}

void config_text::field(std::string_view key, bool value) { text_ += fmt::format("{} = {}\n", key, value); }

void config_text::field(std::string_view key, std::chrono::milliseconds value) {
    text_ += fmt::format("{} = \"{}ms\"\n", key, value.count());
}

void config_text::field(std::string_view key, const std::vector<std::string>& value) {
    std::vector<std::string> items;
    for (const auto& item : value) items.push_back(toml_of(item));
    text_ += fmt::format("{} = [{}]\n", key, fmt::join(items, ", "));
}

void config_text::unsigned_field(std::string_view key, std::uint64_t value) {
    const auto* known = find_config_key(table_, key);
    const bool size = known && known->type == config_type::size;
    text_ += size ? fmt::format("{} = \"{}\"\n", key, value) : fmt::format("{} = {}\n", key, value);
}

}  // namespace banyan
