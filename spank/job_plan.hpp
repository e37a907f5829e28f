// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of the job whose prolog this is, as root may believe it. Everything in a prolog's environment that
// begins with SPANK_ may be the user's; the other names are slurmd's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"
#include "spank/launch.hpp"
#include "train/plan.hpp"

namespace banyan::spank {

/// A variable that slurmd itself sets; an error when it is missing.
result<std::string> slurmd_variable(const char* name);
result<std::uint32_t> slurmd_number(const char* name, std::uint32_t most);

/// What slurmd, and nobody else, says of the job. An error names the variable that is missing.
struct job_identity {
    std::uint32_t job = 0;
    std::uint32_t restart = 0;
    uid_t uid = 0;
    std::string node;                ///< this one
    std::vector<std::string> nodes;  ///< all of the job's, in Slurm's order
};
result<job_identity> job_of_slurmd();

/// A variable of the job's SPANK environment, as the prolog gets it; empty when it is not set. Hostile.
std::string spank_variable(const std::string& name);

/// The plan in the environment, if slurmctld's user wrote it for exactly this run of this job, for its shape
/// as --train-parallel has it and for no node but the job's. Where Slurm's own plugin chose the nodes, the
/// plan that follows from `job` and the shape: what the environment has is not looked at then.
result<train::plan> trusted_plan(const settings& s, const job_identity& job);

}  // namespace banyan::spank
