// SPDX-License-Identifier: BSD-3-Clause
//
// Whether Slurm has more nodes for a job that runs. The caller has read the job before (job_query.hpp), which
// starts libslurm.
#pragma once

#include <cstdint>

#include "common/result.hpp"

namespace banyan::supervisor {

/// Whether `job` could begin anew (begin_anew.hpp) with `all` nodes, `more` than it has, at once: Slurm would
/// start a job that asks for these, and preempt none for it, and no job waits for nodes of any partition that
/// has nodes of the job's partition. unavailable: slurmctld does not answer, or refuses a job that asks for
/// these; denied: it does not tell who waits (PrivateData).
result<bool> could_have(std::uint32_t job, std::uint32_t all, std::uint32_t more);

}  // namespace banyan::supervisor
