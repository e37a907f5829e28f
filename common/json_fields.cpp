// SPDX-License-Identifier: BSD-3-Clause
#include "common/json_fields.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace banyan {
namespace {

using nlohmann::json;

/// What a value is, without what it says: that may be long, and not fit for a terminal.
std::string kind_of(const json* value) {
    if (!value) return "missing";
    if (value->is_number()) return value->dump();
    switch (value->type()) {
        case json::value_t::null:
            return "null";
        case json::value_t::boolean:
            return value->get<bool>() ? "true" : "false";
        case json::value_t::string:
            return fmt::format("a text of {} bytes", value->get_ref<const std::string&>().size());
        case json::value_t::array:
            return fmt::format("a list of {}", value->size());
        default:
            return "an object";
    }
}

bool is_number_to(const json& value, std::uint64_t max) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() <= max;
}

bool is_text_to(const json& value, std::size_t max) {
    return value.is_string() && value.get_ref<const std::string&>().size() <= max;
}

bool is_list_to(const json* value, std::size_t count) {
    return value && value->is_array() && value->size() <= count;
}

}  // namespace

json_fields::json_fields(const json& object, std::string path) : object_(&object), path_(std::move(path)) {}

const json* json_fields::find(const char* key) const {
    if (!object_->is_object()) return nullptr;
    const auto it = object_->find(key);
    return it == object_->end() ? nullptr : &*it;
}

bool json_fields::has(const char* key) const { return find(key) != nullptr; }

std::string json_fields::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::unexpected<error> json_fields::wrong(std::string_view key, const json* value,
                                          std::string_view expected) const {
    return fail(errc::invalid_input,
                fmt::format("\"{}\" is {}, expected {}", path_of(key), kind_of(value), expected));
}

result<std::uint64_t> json_fields::number(const char* key, std::uint64_t max) const {
    const auto* value = find(key);
    if (!value || !is_number_to(*value, max))
        return wrong(key, value, fmt::format("a number from 0 to {}", max));
    return value->get<std::uint64_t>();
}

result<std::int64_t> json_fields::integer(const char* key, std::int64_t min, std::int64_t max) const {
    const auto* value = find(key);
    const bool fits = value && value->is_number_integer() &&
                      (!value->is_number_unsigned() || is_number_to(*value, INT64_MAX)) &&
                      value->get<std::int64_t>() >= min && value->get<std::int64_t>() <= max;
    if (!fits) return wrong(key, value, fmt::format("a number from {} to {}", min, max));
    return value->get<std::int64_t>();
}

result<bool> json_fields::flag(const char* key) const {
    const auto* value = find(key);
    if (!value || !value->is_boolean()) return wrong(key, value, "true or false");
    return value->get<bool>();
}

result<std::string> json_fields::text(const char* key, std::size_t max) const {
    const auto* value = find(key);
    if (!value || !is_text_to(*value, max))
        return wrong(key, value, fmt::format("a text of at most {} bytes", max));
    return value->get<std::string>();
}

result<std::size_t> json_fields::one_of(const char* key, std::span<const std::string_view> names) const {
    const auto* value = find(key);
    if (value && value->is_string())
        if (const auto it = std::ranges::find(names, value->get_ref<const std::string&>()); it != names.end())
            return static_cast<std::size_t>(it - names.begin());
    return wrong(key, value, fmt::format("one of {}", fmt::join(names, ", ")));
}

result<std::vector<std::uint64_t>> json_fields::wide_numbers(const char* key, std::size_t count,
                                                             std::uint64_t max) const {
    const auto* value = find(key);
    if (!is_list_to(value, count))
        return wrong(key, value, fmt::format("a list of at most {} numbers", count));
    std::vector<std::uint64_t> out;
    out.reserve(value->size());
    for (std::size_t i = 0; i < value->size(); ++i) {
        const auto& one = (*value)[i];
        if (!is_number_to(one, max))
            return wrong(fmt::format("{}[{}]", key, i), &one, fmt::format("a number from 0 to {}", max));
        out.push_back(one.get<std::uint64_t>());
    }
    return out;
}

result<std::vector<std::string>> json_fields::texts(const char* key, std::size_t count,
                                                    std::size_t max) const {
    const auto* value = find(key);
    if (!is_list_to(value, count)) return wrong(key, value, fmt::format("a list of at most {} texts", count));
    std::vector<std::string> out;
    out.reserve(value->size());
    for (std::size_t i = 0; i < value->size(); ++i) {
        const auto& one = (*value)[i];
        if (!is_text_to(one, max))
            return wrong(fmt::format("{}[{}]", key, i), &one, fmt::format("a text of at most {} bytes", max));
        out.push_back(one.get<std::string>());
    }
    return out;
}

result<json_fields> json_fields::object(const char* key) const {
    const auto* value = find(key);
    if (!value || !value->is_object()) return wrong(key, value, "an object");
    return json_fields(*value, path_of(key));
}

result<std::vector<json_fields>> json_fields::list(const char* key, std::size_t count) const {
    const auto* value = find(key);
    if (!is_list_to(value, count))
        return wrong(key, value, fmt::format("a list of at most {} objects", count));
    std::vector<json_fields> out;
    out.reserve(value->size());
    for (std::size_t i = 0; i < value->size(); ++i)
        out.emplace_back((*value)[i], fmt::format("{}[{}]", path_of(key), i));
    return out;
}

result<void> json_fields::may(const char* key, std::string& into) const {
    if (!has(key)) return {};
    BANYAN_TRY(into, text(key, std::numeric_limits<std::size_t>::max()));
    return {};
}

result<void> json_fields::may(const char* key, bool& into) const {
    if (!has(key)) return {};
    BANYAN_TRY(into, flag(key));
    return {};
}

}  // namespace banyan
