// SPDX-License-Identifier: BSD-3-Clause
//
// [sweep] of banyan.conf: what the node is held to.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan::sweep {

/// 0 or empty: the check of that name is not asked for.
struct settings {
    std::uint32_t links = 0, link_rate = 0;  ///< Gb/s
    std::uint32_t gpus = 0;
    bool gpu_ecc = true;
    std::string topology{};
    std::vector<std::string> mounts{}, disks{};
    std::uint32_t disk_fill = 95, disk_inodes = 95;  ///< percent
    std::chrono::milliseconds clock{};
    std::uint64_t memory = 0;
    std::uint32_t bandwidth = 0, pcie = 0, allreduce = 0;  ///< GB/s
    std::string baseline{};
    std::uint32_t baseline_percent = 90;
};

/// `path` empty = defaults; `node` stands for %n.
result<settings> load_settings(const std::filesystem::path& path, const std::string& node);

}  // namespace banyan::sweep
