// SPDX-License-Identifier: BSD-3-Clause
//
// Another program's output, with what a person at a terminal is told where there is none.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan::topo::cli {

/// Standard output of `words[0]` with the other words as arguments; its standard error goes to ours. Errors:
/// not installed (`package` is what to install), no end within `timeout` (it is ended), more than `most`
/// bytes, or an exit code other than 0 (`hint`).
result<std::string> output_of(const std::vector<std::string>& words, std::chrono::milliseconds timeout,
                              std::size_t most, const std::string& package, const std::string& hint);

}  // namespace banyan::topo::cli
