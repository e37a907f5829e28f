// SPDX-License-Identifier: BSD-3-Clause
//
// What is said of banyan.conf, also by those who look at a line that names it.
#pragma once

#include <filesystem>
#include <vector>

#include "common/result.hpp"
#include "doctor/finding.hpp"

namespace banyan::doctor {

constexpr const char* packaged_config = "/etc/banyan/banyan.conf";
constexpr const char* hidden_config_effect =
    "jobs of users run without checkpoints, and commands of banyan end with an error for them";

/// Of a banyan.conf that cannot be loaded: `why` from config_file::load.
finding unusable(const std::filesystem::path& config, const error& why);
/// The files that make it up, and their folder: what has to be readable. Those that are not there, too.
std::vector<std::filesystem::path> parts_of_config(const std::filesystem::path& config);

}  // namespace banyan::doctor
