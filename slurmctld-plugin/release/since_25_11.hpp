// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the releases from 25.11 on have in common.
#pragma once

#include "slurmctld-plugin/release/since_25_05.hpp"

namespace banyan::slurm {

inline bool memory_is_counted() { return slurm_conf.select_type_param & SELECT_MEMORY; }

inline void complete_lost(job_record_t& job, bool requeue) {
    job_complete(&job.step_id, slurm_conf.slurm_user_id, requeue, true, 1);
}

inline void requeue_ended(job_record_t& job) {
    job_requeue_internal(slurm_conf.slurm_user_id, &job, false, 0);
}

inline bool starts_again_by_itself(const job_record_t& job) { return job.bit_flags & EXPEDITED_REQUEUE; }

}  // namespace banyan::slurm
