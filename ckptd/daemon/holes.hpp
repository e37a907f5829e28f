// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that makes holes in the memory that it shares with the daemon (docs/decisions/020.6) has lost what
// lies there, by its own doing and not the node's: the memory is let go of and none of it is used.
#pragma once

#include "ckptd/daemon/reporter.hpp"

namespace banyan::ckpt {

/// Where the daemon has met a hole in memory of the rank: its copies there are lost, the memory is let go of
/// until it attaches again, and the user is told once. Whether there was one.
bool give_up_holed(reporter& users, const session_ptr& s, std::uint32_t rank);

}  // namespace banyan::ckpt
