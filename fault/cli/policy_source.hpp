// SPDX-License-Identifier: BSD-3-Clause
//
// Which policy a command is about.
#pragma once

#include <string>

#include "fault/cli/commands.hpp"
#include "fault/policy/policy_file.hpp"

namespace banyan::fault {

struct policy_text {
    std::string path;    ///< empty: the shipped one
    std::string source;  ///< how it is called
    std::string text;
};

/// invalid_input: banyan.conf is wrong. Else the file cannot be read.
result<policy_text> find_policy(const policy_call& call);
result<policy> right_policy(const policy_text& from);

}  // namespace banyan::fault
