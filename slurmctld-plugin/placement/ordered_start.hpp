// SPDX-License-Identifier: GPL-2.0-or-later
//
// A training job where there is no fabric to place it on: cons_tres chooses the nodes, the slots are in
// Slurm's order (train/plan_in_order.hpp), and a requeued job goes back to the nodes that hold its shards.
#pragma once

#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/placement/job_placement.hpp"

namespace banyan::slurm {

/// As place_job.
int start_in_order(job_record_t& job, const job_request& asked, const ctld_tables& ctld,
                   bitstr_t* node_bitmap, test_mode mode, const cons_tres& inner);

}  // namespace banyan::slurm
