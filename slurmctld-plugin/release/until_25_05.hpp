// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the releases up to 25.05 have in common.
#pragma once

#include "slurmctld-plugin/release/until_25_11.hpp"

namespace banyan::slurm {

inline bool memory_is_counted() { return slurm_conf.select_type_param & CR_MEMORY; }

inline void complete_lost(job_record_t& job, bool requeue) {
    job_complete(job.job_id, slurm_conf.slurm_user_id, requeue, true, 1);
}

inline void requeue_ended(job_record_t& job) {
    job_requeue(slurm_conf.slurm_user_id, job.job_id, nullptr, false, 0);
}

inline bool starts_again_by_itself(const job_record_t&) { return false; }

inline void expedite(job_record_t&) {}

}  // namespace banyan::slurm
