// SPDX-License-Identifier: BSD-3-Clause
//
// Trying out what a library may not survive. Only for programs with one thread: the trial runs in a fork.
#pragma once

#include <functional>

namespace banyan::topo {

/// Runs `f` in a child process with the same memory: true when it returned true there, so that it will here
/// too. False when it returned false, threw, crashed, took more than a minute, or no child could be had. What
/// it writes to standard error is dropped.
bool survives(const std::function<bool()>& f);

}  // namespace banyan::topo
