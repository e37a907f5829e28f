// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a mount point is mounted, and answers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/finding.hpp"
#include "sweep/own_mounts.hpp"

namespace banyan::sweep {

/// `answer` is what statvfs has said of it, an errno.
finding judge_mount(const std::string& point, const std::vector<mount_line>& mounted, int answer);

/// Looks and judges. May hang where the file system does.
finding check_mount(const std::filesystem::path& root, const std::string& point);

}  // namespace banyan::sweep
