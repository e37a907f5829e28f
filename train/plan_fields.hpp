// SPDX-License-Identifier: BSD-3-Clause
//
// What a plan and its summary have in common as text: one JSON object that says its version, and fields that
// are read one by one. Errors name the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::train {

/// An object of plan_version, or of elastic_plan_version.
result<nlohmann::json> fields_of(std::string_view text);

/// The version and the head, and back.
nlohmann::json head_fields(const plan_head& head);
result<void> read_head(const nlohmann::json& from, plan_head& into);
/// That so many nodes have the ranks of the shape, or of fewer data parallel groups where the job may do with
/// those.
result<void> check_ranks(const plan_head& head, std::uint64_t nodes);
/// The nodes that all ranks of the shape need.
result<std::uint32_t> slots_of(const plan_head& head);

/// The buddies of the slots as [distance from the slot, how many slots in turn, distance, ...]: they mostly
/// follow a stride.
std::vector<std::uint32_t> runs_of(const std::vector<std::uint32_t>& buddies);
/// The reverse, for so many slots; a permutation of them.
result<std::vector<std::uint32_t>> buddies_at(const nlohmann::json& from, const char* key, std::size_t slots);

result<std::uint32_t> number_at(const nlohmann::json& from, const char* key);

// Fields that may be missing, and are then empty.

result<std::vector<std::string>> names_at(const nlohmann::json& from, const char* key);
result<std::string> text_at(const nlohmann::json& from, const char* key);
/// At most `count` of them.
result<std::optional<std::vector<std::uint32_t>>> numbers_at(const nlohmann::json& from, const char* key,
                                                             std::size_t count);

}  // namespace banyan::train
