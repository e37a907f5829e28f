// SPDX-License-Identifier: GPL-2.0-or-later
//
// Growing and shrinking of a running job. select/cons_tres refuses to grow a job that has GPUs, and in one
// without it loses track of the cores (its job_resources_bits_copy() ignores where the nodes are); when a job
// shrinks it leaves the request and the running steps as they were. What a node has allocated is never
// touched here: a node that changes its job keeps its counts.
#pragma once

#include <functional>

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// Moves all nodes of `donor` with all that it holds on them into `job`. Where growth_obstacle() has
/// something to say, `expand`, the inherited select_p_job_expand of the two, answers. Slurm calls
/// rebuild_step_bitmaps() after it.
int grow_job(job_record_t& donor, job_record_t& job, const std::function<int()>& expand);

/// `resize` is the inherited select_p_job_resized of `job` with one node less. The request and the running
/// steps of the job follow it.
int shrink_job(job_record_t& job, const std::function<int()>& resize);

}  // namespace banyan::slurm
