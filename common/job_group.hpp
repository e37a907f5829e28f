// SPDX-License-Identifier: BSD-3-Clause
//
// Control groups that slurmstepd makes of a job: ".../job_42/step_0/...", with a number; and since 26.05 with
// cgroup v2 ".../sEKNKTV3WPV500/step_0/...", with a SLUID, an s and thirteen digits of Crockford's base 32.
#pragma once

#include <string_view>

namespace banyan {

/// Whether a part of a group's path is a SLUID. It says nothing about the job's number.
constexpr bool is_sluid(std::string_view part) {
    constexpr std::string_view digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    return part.size() == 14 && part.front() == 's' &&
           part.find_first_not_of(digits, 1) == std::string_view::npos;
}

}  // namespace banyan
