// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm 22.05 (Debian 12). Tried live: 22.05.8.
#pragma once

// clang-format off
// slurm_xlator.h renames what the headers after it declare, so it must stand before them.
extern "C" {
#include "src/common/slurm_xlator.h"
#include "slurm/slurm.h"
#include "slurm/slurm_errno.h"
#include "src/common/bitstring.h"
#include "src/common/gres.h"
#include "src/common/hostlist.h"
#include "src/common/job_resources.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/reverse_tree.h"
#include "src/common/select.h"
#include "src/common/slurm_auth.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/slurmctld/agent.h"
#include "src/slurmctld/gres_ctld.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/slurmctld.h"
}
// clang-format on
#include "slurmctld-plugin/release/select_rows.hpp"

#define BANYAN_SELECT_TABLE(OURS, THEIRS) \
    BANYAN_ROWS_ALWAYS(OURS, THEIRS)      \
    BANYAN_ROWS_OF_STEPS(OURS, THEIRS)    \
    BANYAN_ROWS_OF_22_05(OURS, THEIRS)
/// This release's select.h shows slurm_select_ops_t; later ones keep it in select.c.
#define BANYAN_SLURM_SHOWS_SELECT_OPS 1

#define BANYAN_WILL_RUN_PARAMETER
#define BANYAN_WILL_RUN_ARGUMENT
#define BANYAN_WHY_PARAMETER
#define BANYAN_WHY_ARGUMENT static_cast<char**>(nullptr)

namespace banyan::slurm {

using list_ptr = List;
using list_iterator_ptr = ListIterator;
using hostlist_ptr = hostlist_t;
using excluded_ptr = bitstr_t*;

/// Our number among the select plugins (host_program.hpp): slurmctld loads all of them, and each needs its
/// own.
constexpr std::uint32_t our_id = 180;

/// Programs that load the configured select plugin and no other: select_g_init(1).
inline bool loads_one_select_plugin(std::string_view program) {
    return program == "slurmd" || program == "slurmstepd";
}

/// slurmctld does not call rebuild_step_bitmaps() for a job that loses a node.
constexpr bool steps_follow_a_shrinking_job = false;

/// It leaves no mark in this release.
inline void forget_preemption(job_record_t&) {}

/// There are none.
inline bool leave_step_manager(job_record_t&) { return false; }

/// Ends the steps of a training job that are through on all of their nodes. Slurm ends a step when the last
/// of its nodes says that it is through; where that last node is lost instead, this release looks no
/// further, and the step holds the nodes until the job ends. For when a node has left the job.
void end_finished_steps(job_record_t& job);

}  // namespace banyan::slurm

#include "slurmctld-plugin/release/step_hooks.hpp"
#include "slurmctld-plugin/release/until_25_05.hpp"
