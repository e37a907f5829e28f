// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a mount point is mounted, and answers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/finding.hpp"

namespace banyan::sweep {

struct mount_line {
    std::string point, type;
};

/// Of /proc/self/mountinfo. A line of another shape is left out.
std::vector<mount_line> parse_mountinfo(std::string_view text);

/// `answer` is what statvfs has said of it, an errno.
finding judge_mount(const std::string& point, const std::vector<mount_line>& mounted, int answer);

/// Looks and judges. May hang where the file system does.
finding check_mount(const std::filesystem::path& root, const std::string& point);

/// "/a//b/" -> "/a/b"
std::string without_end_slash(const std::string& path);

}  // namespace banyan::sweep
