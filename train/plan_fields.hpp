// SPDX-License-Identifier: BSD-3-Clause
//
// What a plan and its summary have in common as text: one JSON object that says its version, and fields that
// are read one by one. Errors name the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::train {

/// An object of plan_version.
result<nlohmann::json> fields_of(std::string_view text);

/// The first two and the last may be missing, and are then empty, or false.
result<std::vector<std::string>> names_at(const nlohmann::json& from, const char* key);
result<std::string> text_at(const nlohmann::json& from, const char* key);
result<std::uint32_t> number_at(const nlohmann::json& from, const char* key);
result<bool> flag_at(const nlohmann::json& from, const char* key);

}  // namespace banyan::train
