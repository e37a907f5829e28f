// SPDX-License-Identifier: GPL-2.0-or-later
//
// When a running job that has GPUs can take the nodes of another, so that nothing is lost track of. Without a
// change to either, so that it can be asked at any time.
#pragma once

#include <string>

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

bool has_gres(const job_record_t& job);

/// Why the nodes of `donor` cannot become nodes of `job` with all that the donor holds on them; empty when
/// they can.
std::string growth_obstacle(const job_record_t& donor, const job_record_t& job);

/// Why the GRES of a job cannot be followed node by node; empty when they can.
std::string unclear_gres(const job_record_t& job);

/// `request` is the entry of the job's request for what `allocated`, an entry of its allocation, holds.
bool asks_for(const gres_state_t* request, const gres_state_t* allocated);

/// Two entries of allocations are of one GRES and type.
bool same_kind(const gres_state_t* a, const gres_state_t* b);

/// The step has what it was started with.
bool lives(const step_record_t& step);

/// Slurm's rebuild_step_bitmaps() does no harm to this step of the job.
bool rebuild_is_safe(const job_record_t& job, const step_record_t& step);

}  // namespace banyan::slurm
