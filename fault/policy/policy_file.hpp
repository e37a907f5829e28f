// SPDX-License-Identifier: BSD-3-Clause
//
// The policy as a file: TOML, one [[rule]] after the other. etc/banyan-policy.toml explains the keys and is
// the shipped policy, whose text is built in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "fault/policy/policy.hpp"

namespace banyan::fault {

/// What is wrong, or a warning, at a place of the file.
struct policy_problem {
    bool warning = false;
    std::uint32_t line = 0, column = 0;
    std::string what, hint;
    /// "FILE:3:10: ...; ..."
    std::string text(const std::string& file) const;
};

struct policy_reading {
    std::optional<policy> rules;  ///< when nothing is wrong
    std::vector<policy_problem> problems;
};

/// `source`: what stands for the file in errors.
policy_reading parse_policy(const std::string& source, std::string_view text);

/// A regular file of at most 1 MiB; "-" is the standard input.
result<std::string> read_policy_text(const std::filesystem::path& path);

/// Empty for the shipped policy. The error is the first of the file's, and tells how many there are.
result<policy> load_policy(const std::filesystem::path& path);

const policy& shipped_policy();
std::string_view shipped_policy_text();
inline constexpr const char* shipped_policy_name = "the shipped policy";

}  // namespace banyan::fault
