// SPDX-License-Identifier: BSD-3-Clause
//
// Looks that may hang for good (a mount whose server is gone) or crash (a library on a damaged file), each in
// a child process. One that is late is killed and not waited for: in uninterruptible sleep it cannot die.
#pragma once

#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace banyan::sweep {

using deadline = clock::time_point;
using look = std::function<nlohmann::json()>;

/// Runs all of them at once; the answers stand in their order. An answer that has not come by `until`, is no
/// JSON or is larger than 4 MiB is an error that says so. For programs with one thread.
std::vector<result<nlohmann::json>> look_apart(const std::vector<look>& looks, deadline until);

/// The same for one.
result<nlohmann::json> look_apart(const look& one, deadline until);

}  // namespace banyan::sweep
