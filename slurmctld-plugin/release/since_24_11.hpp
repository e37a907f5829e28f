// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the releases from 24.11 on have in common.
#pragma once

// clang-format off
// slurm_xlator.h renames what the headers after it declare, so it must stand before them.
extern "C" {
#include "src/common/slurm_xlator.h"
#include "slurm/slurm.h"
#include "slurm/slurm_errno.h"
#define operator operator_  // a field of the next header
#include "src/common/extra_constraints.h"
#undef operator
#include "src/common/bitstring.h"
#include "src/common/hostlist.h"
#include "src/common/job_resources.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/reverse_tree.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/interfaces/auth.h"
#include "src/interfaces/gres.h"
#include "src/interfaces/select.h"
#include "src/slurmctld/agent.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/slurmctld.h"
#include "src/stepmgr/stepmgr.h"
}
// clang-format on
#include "slurmctld-plugin/release/select_rows.hpp"

#define BANYAN_WILL_RUN_PARAMETER , will_run_data_t* will_run
#define BANYAN_WILL_RUN_ARGUMENT , will_run
#define BANYAN_WHY_PARAMETER , char** why
#define BANYAN_WHY_ARGUMENT why

namespace banyan::slurm {

using list_ptr = list_t*;
using list_iterator_ptr = list_itr_t*;
using hostlist_ptr = hostlist_t*;
using excluded_ptr = resv_exc_t*;

/// slurmctld calls rebuild_step_bitmaps() for a job that loses a node; a second call would read past arrays.
constexpr bool steps_follow_a_shrinking_job = true;

/// A job that was preempted after a grace time keeps the mark of it, by which slurmctld would requeue its
/// next run too, when that has ended.
inline void forget_preemption(job_record_t& job) { job.bit_flags &= ~GRACE_PREEMPT; }

/// Whether the job, which has not begun, would have had one: by the site's choice or its user's.
inline bool leave_step_manager(job_record_t& job) {
    const bool had_one = job.bit_flags & STEPMGR_ENABLED;
    job.bit_flags &= ~STEPMGR_ENABLED;
    return had_one;
}

/// slurmctld ends them itself.
inline void end_finished_steps(job_record_t&) {}

}  // namespace banyan::slurm
