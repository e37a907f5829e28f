// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace banyan::spank {

/// Where a process that is to outlive a step writes itself, so that it is none of the step's: a file for each
/// cgroup of a job that `self` names, which is what /proc/self/cgroup has. None outside of jobs.
std::vector<std::string> cgroups_outside_job(std::string_view self);

}  // namespace banyan::spank
