// SPDX-License-Identifier: GPL-2.0-or-later
//
// The entry points that slurmctld calls for steps, up to 24.11 (select/step_dispatch.cpp).
#pragma once

extern "C" {
int select_p_job_init(banyan::slurm::list_ptr jobs);
bitstr_t* select_p_step_pick_nodes(job_record_t* job, select_jobinfo_t* info, std::uint32_t node_count,
                                   bitstr_t** avail_nodes);
int select_p_step_start(step_record_t* step);
}

namespace banyan::slurm {

/// Remembers the steps that Slurm has just killed, since `node` is lost (step/broken_steps.hpp). For when it
/// has left the job.
void note_broken_steps(const job_record_t& job, const node_record_t& node);

}  // namespace banyan::slurm
