// SPDX-License-Identifier: BSD-3-Clause
//
// What a rule has done to the jobs of a node that stays: their training step is ended, so that banyan-run
// starts it again on the same nodes, or they go back into the queue.
#pragma once

#include <optional>
#include <vector>

#include "fault/controller/verification.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {

/// Whether that was done by interrupt_jobs, or was about to be.
bool is_interruption(const action_record& a);

struct interruption {
    std::vector<job_status> queued;  ///< as they ran; to be followed until they run again
    std::optional<error> failed;     ///< Slurm did not tell, or did not do it: to be tried again
};

/// Each of `jobs`, or the one that the incident accuses; each once for an incident, whoever begins it anew.
/// Written down before it is done: a controller that ends between the two is followed by one that ends that
/// very step, or that very run, if it is still there. What began after the fault was seen is left alone, as
/// is a job without a plan. The tools must outlive what is begun here: steps that were ended are followed.
task<interruption> interrupt_jobs(const verification_tools& tools, std::uint64_t number, step_kind what,
                                  std::vector<job_status> jobs);

}  // namespace banyan::fault
