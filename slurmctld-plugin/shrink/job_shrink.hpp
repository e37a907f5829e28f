// SPDX-License-Identifier: GPL-2.0-or-later
//
// A running job that loses a node or gives one away. select/cons_tres leaves its request and its running
// steps as they were. What a node has allocated is never touched here.
#pragma once

#include <functional>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// `resize` is the inherited select_p_job_resized of `job` with one node less. The request and the running
/// steps of the job follow it.
int shrink_job(job_record_t& job, const std::function<int()>& resize);

}  // namespace banyan::slurm
