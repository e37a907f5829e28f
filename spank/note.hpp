// SPDX-License-Identifier: BSD-3-Clause
//
// From the prolog, which no user hears, to the tasks: a file beside the daemon's socket, until the job ends.
#pragma once

#include <cstdint>
#include <string>

#include "spank/launch.hpp"

namespace banyan::spank {

/// Why `job` has no checkpoints on this node. For the prolog; makes the socket's folder where there is none.
void leave_note(const daemon_paths& paths, std::uint64_t job, const std::string& why);
/// Empty when there is none, or one that root did not write.
std::string read_note(const daemon_paths& paths, std::uint64_t job);
void remove_note(const daemon_paths& paths, std::uint64_t job);

}  // namespace banyan::spank
