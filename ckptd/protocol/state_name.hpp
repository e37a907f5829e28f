// SPDX-License-Identifier: BSD-3-Clause
//
// Names of the states that a process keeps besides the one without a name. A name becomes a folder in storage
// and a label of metrics.
#pragma once

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "common/result.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {

constexpr std::size_t max_states = 4;  ///< of a job, the one without a name not counted
constexpr std::size_t max_state_name = 32;

inline bool is_state_name(std::string_view name) {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !name.empty() && name.size() <= max_state_name && plain(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '_' || c == '-'; });
}

inline result<void> check_state_name(std::string_view name) {
    if (is_state_name(name)) return {};
    return fail(errc::invalid_input,
                fmt::format("\"{}\" is no name of a state", printable(name.substr(0, 2 * max_state_name))),
                fmt::format("letters a to z, digits, _ and -, beginning with a letter or a digit, {} at most",
                            max_state_name));
}

}  // namespace banyan::ckpt
