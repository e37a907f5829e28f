// SPDX-License-Identifier: BSD-3-Clause
//
// What another user could do with a path: what root asks before it finds out the hard way.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.hpp"

namespace banyan::doctor {

/// Empty: `user` can read the file. Else the reason: the first folder or the file that keeps him out. As
/// root the file system is asked in his name, else mode bits alone are looked at. Forks: no threads yet.
std::string cannot_read(const std::filesystem::path& file, const std::string& user);

/// A file, or a folder on the way to it, that users who are in no group of its owner's cannot get through.
struct obstacle {
    std::string what;  ///< "/etc/banyan/site.conf has mode 0600"
    std::string fix;   ///< the command
};
/// The first one, by mode bits; nothing: everybody can read `path`, a file or a folder, or it is not there.
std::optional<obstacle> hidden_from_users(const std::filesystem::path& path);
/// The same of several as findings: one for each obstacle.
findings judge_hidden(const std::vector<std::filesystem::path>& paths, const char* why);

}  // namespace banyan::doctor
