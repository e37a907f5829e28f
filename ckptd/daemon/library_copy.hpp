// SPDX-License-Identifier: BSD-3-Clause
//
// The library of training processes, put beside the daemon's socket: a container that mounts that folder has
// both, of one release.
#pragma once

#include <filesystem>
#include <string>

namespace banyan::ckpt {

/// Copies `library` into the folder of `socket`, unless its like is there; processes that have loaded the one
/// before keep that. What keeps it from that is logged: the daemon serves all the same.
void put_library_beside(const std::string& socket, const std::filesystem::path& library);

}  // namespace banyan::ckpt
