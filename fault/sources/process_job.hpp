// SPDX-License-Identifier: BSD-3-Clause
//
// Which job a process belongs to, as its cgroup says: what slurmstepd made, and no user can. Its environment
// would say it, too, and is the user's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace banyan::fault {

struct process_job {
    std::uint32_t job = 0;
    uid_t uid = 0;  ///< of the process
};

/// `root` has proc/PID/cgroup; where it lacks it, the host's own /proc is asked. Nothing for a process that
/// is gone, or that no slurmstepd began.
std::optional<process_job> job_of_process(const std::filesystem::path& root, std::uint32_t pid);

/// What slurmstepd's groups say of a job: its number, or else, where the group has a SLUID, the group of the
/// step, whose slurmstepd knows the number.
struct job_group {
    std::uint32_t job = 0;
    std::string_view step;  ///< into what was read: "/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0"
};

/// The text of /proc/PID/cgroup: ".../slurm/uid_1000/job_42/step_0/task_0",
/// "/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", or the latter with a SLUID for job_42.
std::optional<job_group> job_in_cgroup(std::string_view text);

}  // namespace banyan::fault
