// SPDX-License-Identifier: BSD-3-Clause
//
// What another user could do with a path: what root asks before it finds out the hard way.
#pragma once

#include <filesystem>
#include <string>

namespace banyan::doctor {

/// Empty: `user` can read the file. Else the reason: the first folder or the file that keeps him out. As
/// root the file system is asked in his name, else mode bits alone are looked at. Forks: no threads yet.
std::string cannot_read(const std::filesystem::path& file, const std::string& user);

}  // namespace banyan::doctor
