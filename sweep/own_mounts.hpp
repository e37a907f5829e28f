// SPDX-License-Identifier: BSD-3-Clause
//
// Mounts that this process alone has: a service's sandbox makes the node's file systems read-only for it, and
// hides some. What it meets there says nothing of the node.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::sweep {

struct mount_line {
    std::string point, type;
    std::string of{};               ///< what of its file system is mounted there
    bool read_only = false;         ///< there
    bool system_read_only = false;  ///< the file system itself, wherever it is mounted
};

/// Of /proc/self/mountinfo. A line of another shape is left out.
std::vector<mount_line> parse_mountinfo(std::string_view text);

/// "/a//b/" -> "/a/b"
std::string without_end_slash(const std::string& path);

/// What is mounted at exactly `path`: the last is on top of the others.
const mount_line* mounted_at(const std::vector<mount_line>& mounts, const std::string& path);
/// What `path`, which has no links in it, lies in.
const mount_line* mount_of(const std::vector<mount_line>& mounts, const std::string& path);

/// Whose mounts this process has.
struct mounts_seen {
    std::vector<mount_line> own;
    bool nodes = true;                            ///< they are process 1's
    std::optional<std::vector<mount_line>> of_1;  ///< where they are not: process 1's, if we may see them
};
result<mounts_seen> look_at_mounts(const std::filesystem::path& root);

/// The folder is read-only for us, and may not be for the node.
bool is_read_only_here_alone(const mounts_seen& seen, const std::string& folder);
/// Systemd has put something in the place of `path`, or it is mounted for the node and not for us.
bool is_hidden_here(const mounts_seen& seen, const std::string& path);

}  // namespace banyan::sweep
