// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a folder takes a file, and its file system has space left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "sweep/finding.hpp"

namespace banyan::sweep {

struct disk_view {
    std::string failed_at{};  ///< "make a file"; empty: a file was made, written and is gone
    int failed_with = 0;      ///< the errno of that
    std::uint64_t blocks = 0, blocks_free = 0, blocks_for_users = 0;
    std::uint64_t inodes = 0, inodes_free = 0;  ///< 0 inodes: the file system does not count them
};

struct disk_limits {
    std::uint32_t fill = 95, inodes = 95;  ///< percent
};

finding judge_disk(const std::string& folder, const disk_view& v, const disk_limits& limits);

/// Writes 4 KiB, for which no name stays behind. May hang where the file system does.
disk_view look_at_disk(const std::string& folder);

/// Looks and judges. `root` is where proc/ is.
finding check_disk(const std::filesystem::path& root, const std::string& folder, const disk_limits& limits);

}  // namespace banyan::sweep
