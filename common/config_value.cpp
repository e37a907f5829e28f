// SPDX-License-Identifier: BSD-3-Clause
#include "common/config_value.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"

namespace banyan {

std::optional<std::string> text_of(const toml::node& node, const config_key& key) {
    auto value = node.value_exact<std::string>();
    if (!value || key.type != config_type::choice) return value;
    const auto words = split(key.choices, ' ');
    return std::ranges::find(words, *value) == words.end() ? std::nullopt : value;
}

std::optional<std::uint64_t> number_of(const toml::node& node, const config_key& key) {
    if (key.type == config_type::size) {
        const auto text = node.value_exact<std::string>();
        const auto value = text ? parse_bytes(*text) : fail(errc::invalid_input, "");
        return value ? std::optional(*value) : std::nullopt;
    }
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < key.min || *value > key.max) return {};
    return static_cast<std::uint64_t>(*value);
}

std::optional<std::chrono::milliseconds> duration_of(const toml::node& node, const config_key&) {
    const auto text = node.value_exact<std::string>();
    const auto value = text ? parse_duration(*text) : fail(errc::invalid_input, "");
    return value ? std::optional(*value) : std::nullopt;
}

std::optional<bool> flag_of(const toml::node& node, const config_key&) { return node.value_exact<bool>(); }

std::optional<std::vector<std::string>> list_of(const toml::node& node, const config_key& key) {
    const auto* array = node.as_array();
    if (!array || array->size() < static_cast<std::size_t>(key.min)) return {};
    std::vector<std::string> out;
    for (const auto& item : *array) {
        const auto value = item.value_exact<std::string>();
        if (!value) return {};
        out.push_back(*value);
    }
    return out;
}

bool is_right(const toml::node& node, const config_key& key) {
    switch (key.type) {
        case config_type::number:
        case config_type::size:
            return number_of(node, key).has_value();
        case config_type::flag:
            return flag_of(node, key).has_value();
        case config_type::duration:
            return duration_of(node, key).has_value();
        case config_type::list:
            return list_of(node, key).has_value();
        default:
            return text_of(node, key).has_value();
    }
}

std::string expected(const config_key& key) {
    switch (key.type) {
        case config_type::number:
            return fmt::format("a number from {} to {}", key.min, key.max);
        case config_type::size:
            return R"(a size such as "64M" or "1.5G")";
        case config_type::flag:
            return "true or false";
        case config_type::duration:
            return R"(a duration such as "250ms", "10s" or "5m")";
        case config_type::list:
            return key.min > 0 ? "a list of strings, at least one" : "a list of strings";
        case config_type::choice:
            return fmt::format("one of \"{}\"", fmt::join(split(key.choices, ' '), "\", \""));
        default:
            return "a string";
    }
}

}  // namespace banyan
