// SPDX-License-Identifier: BSD-3-Clause
//
// A moment as a person writes it on a command line.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace banyan::fault {

/// In milliseconds: "2h" (before `now_ms`), "2026-11-23", "2026-11-23T01:02", "2026-11-23 01:02:03" (local
/// time) or with a Z at its end.
result<std::int64_t> moment_from(const std::string& text, std::int64_t now_ms);

}  // namespace banyan::fault
