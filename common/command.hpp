// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a program without a shell and gives its standard output. Blocking: from a daemon call on a pool.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan {

/// Fails when the program is not found, exits other than 0, prints more than `max_bytes` or runs past
/// `timeout` (then it gets SIGTERM, and SIGKILL a second later).
result<std::string> run_command(const std::vector<std::string>& argv, std::chrono::milliseconds timeout,
                                std::size_t max_bytes = 256u << 20);

}  // namespace banyan
