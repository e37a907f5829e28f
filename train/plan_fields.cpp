// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan_fields.hpp"

#include <fmt/format.h>

#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::train {

using nlohmann::json;

namespace {

/// A field as it was read; where that failed, the error says that it is the plan's.
template <class T>
result<T> of_plan(result<T> read) {
    if (!read) read.error().what.insert(0, "the plan's ");
    return read;
}

}  // namespace

result<std::vector<std::string>> names_at(const json& from, const char* key) {
    BANYAN_TRY(const auto list, text_at(from, key));
    if (list.empty()) return std::vector<std::string>{};
    return expand_hostlist(list);
}

result<std::string> text_at(const json& from, const char* key) {
    const json_fields in(from);
    if (!in.has(key)) return std::string();
    return of_plan(in.text(key, max_plan_text));
}

result<bool> flag_at(const json& from, const char* key) {
    const json_fields in(from);
    if (!in.has(key)) return false;
    return of_plan(in.flag(key));
}

result<std::uint32_t> number_at(const json& from, const char* key) {
    return of_plan(json_fields(from).number(key, UINT32_MAX));
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
