// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan_fields.hpp"

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::train {

using nlohmann::json;

result<std::vector<std::string>> names_at(const json& from, const char* key) {
    const auto it = from.find(key);
    if (it == from.end()) return std::vector<std::string>{};
    if (!it->is_string())
        return fail(errc::invalid_input, fmt::format("the plan's \"{}\" is not a host list", key));
    return expand_hostlist(it->get_ref<const std::string&>());
}

result<std::string> text_at(const json& from, const char* key) {
    const auto it = from.find(key);
    if (it == from.end()) return std::string();
    if (!it->is_string())
        return fail(errc::invalid_input, fmt::format("the plan's \"{}\" is not a text", key));
    return it->get<std::string>();
}

result<bool> flag_at(const json& from, const char* key) {
    const auto it = from.find(key);
    if (it == from.end()) return false;
    if (!it->is_boolean())
        return fail(errc::invalid_input, fmt::format("the plan's \"{}\" is not true or false", key));
    return it->get<bool>();
}

result<std::uint32_t> number_at(const json& from, const char* key) {
    const auto it = from.find(key);
    if (it == from.end() || !it->is_number_unsigned() || it->get<std::uint64_t>() > UINT32_MAX)
        return fail(errc::invalid_input, fmt::format("the plan's \"{}\" is not a number", key));
    return it->get<std::uint32_t>();
}

result<json> fields_of(std::string_view text) {
    auto from = json::parse(text, nullptr, false);
    if (!from.is_object()) return fail(errc::invalid_input, "the plan is not a JSON object");
    BANYAN_TRY(const auto version, number_at(from, "version"));
    if (version != plan_version)
        return fail(errc::invalid_input,
                    fmt::format("the plan is of version {}, not {}", version, plan_version),
                    "use the release of banyan on all nodes that slurmctld has");
    return from;
}

}  // namespace banyan::train
