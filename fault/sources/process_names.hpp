// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel begins some messages with the name of a process, which its owner chooses: up to 15 bytes, and
// then "[77]: segfault at ..." or the like, in which the name of his program stands as well. No such text is
// the kernel's word on anything else, whatever is in the names. Every text is asked for this before a
// recogniser of faults reads it. Pure.
#pragma once

#include <string_view>

namespace banyan::fault {

/// Whether the front of a text may be the name of a process: behind at most 15 bytes stands what the kernel
/// prints behind such a name.
bool may_begin_with_a_name(std::string_view text);

/// The OOM killer's line has the name of a cgroup before ",mems_allowed=", printed by itself: where another
/// processor prints in between, a record begins with that name.
bool is_cut_from_oom_line(std::string_view text);

}  // namespace banyan::fault
