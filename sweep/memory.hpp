// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the memory that banyan-ckptd will need is available.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "sweep/finding.hpp"

namespace banyan::sweep {

/// A line of /proc/meminfo, such as "MemAvailable", in bytes.
result<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view name);
finding judge_memory(std::uint64_t available, std::uint64_t wanted);
result<std::uint64_t> available_memory(const std::filesystem::path& root);

}  // namespace banyan::sweep
