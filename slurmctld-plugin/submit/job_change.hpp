// SPDX-License-Identifier: GPL-2.0-or-later
//
// What scontrol update may make of a job.
#pragma once

#include "common/result.hpp"
#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// An error when the change would give a training job that has not started a number of nodes or tasks that
/// its shape does not have: it would start on other nodes than planned, and its ranks in Slurm's order.
/// Another when one of two jobs of which one is to take the nodes of the other trains.
result<void> check_change(const job_desc_msg_t& change, const job_record_t& job);

}  // namespace banyan::slurm
