// SPDX-License-Identifier: BSD-3-Clause
//
// The history as a file: who may read it, and where a damaged one goes.
#pragma once

#include <filesystem>
#include <string>

namespace banyan::fault {

/// Makes it where it is not there. It holds what root alone is told, hence nobody else reads it, whatever the
/// umask; SQLite gives the files beside it the same mode.
void make_private(const std::filesystem::path& path);
/// Where a damaged one is put. An earlier one that was put aside stays as it is.
std::string path_aside(const std::filesystem::path& path);

}  // namespace banyan::fault
