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

/// As Slurm does where the loss of a node ends the job, and with no other requeue. Without `epilog_failed` it
/// holds a job that has JOB_EXPEDITING, which it also gives one whose script failed. A job that makes way for
/// another does not come back before that one.
inline void expedite(job_record_t& job) {
    if (!starts_again_by_itself(job) || job.preempt_time) return;
    job_state_set_flag(&job, JOB_EXPEDITING);
    job.epilog_failed = true;
}

}  // namespace banyan::slurm
