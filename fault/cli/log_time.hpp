// SPDX-License-Identifier: BSD-3-Clause
//
// The time of a log's line, as `banyan-fault parse` shows it, as a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace banyan::fault {

/// In milliseconds, from a beginning that all times of one form share: "123.456789" (seconds), "123456789"
/// (microseconds), "2026-11-23T01:02:03.456+01:00", "Nov 23 01:02:03" (of no year). Nothing for other forms.
std::optional<std::int64_t> log_time_ms(const std::string& text);

}  // namespace banyan::fault
