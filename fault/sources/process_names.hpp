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

}  // namespace banyan::fault
