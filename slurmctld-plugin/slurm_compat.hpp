// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm's internal headers, and every difference between the releases that banyan supports, in this one file.
// Nothing else in this folder tests a version. Tried live: 22.05.8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

// clang-format off
// slurm_xlator.h renames what the headers after it declare, so it must stand before them.
extern "C" {
#include "config.h"
#include "src/common/slurm_xlator.h"
#include "slurm/slurm.h"
#include "slurm/slurm_errno.h"
#include "slurm/slurm_version.h"
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
// Macros that would spoil C++ after this point, such as std::expected's error().
#undef error
#undef info
#undef debug
#undef fatal
#undef verbose
#undef max
#undef min

static_assert(SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0) &&
                  SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0),
              "this release's select API has not been tried: job_test's last arguments changed in 23.11");

/// This release's select.h shows slurm_select_ops_t; that of later ones does not, which keep it in select.c.
#define BANYAN_SLURM_SHOWS_SELECT_OPS 1
#define BANYAN_SELECT_TYPE "select/cons_tres_banyan"

namespace banyan::slurm {

constexpr std::string_view our_type = BANYAN_SELECT_TYPE;

/// Our number among the select plugins (host_program.hpp): unique among those that slurmctld loads, which are
/// all of them up to 24.11. From 25.05 on there is one, and it must have the number of cons_tres.
constexpr std::uint32_t our_id = 180;
constexpr std::uint32_t cons_tres_id = SELECT_PLUGIN_CONS_TRES;

/// Programs that load the configured select plugin and no other: select_g_init(1).
inline bool loads_one_select_plugin(std::string_view program) {
    return program == "slurmd" || program == "slurmstepd";
}

/// What of job_test's mode says why it is asked.
enum class test_mode { run_now, test_only, will_run };
inline test_mode mode_of(std::uint16_t mode) {
    if (SELECT_IS_MODE_TEST_ONLY(mode)) return test_mode::test_only;
    if (SELECT_IS_MODE_WILL_RUN(mode)) return test_mode::will_run;
    return test_mode::run_now;
}

/// As slurmctld does when the node that should run the script registers without it: the job is requeued where
/// it may be, and else ends as NODE_FAIL. Under the write locks of jobs and nodes.
inline void script_is_lost(job_record_t& job) {
    job.batch_flag = 1;  // Slurm counts up, and holds a job whose launch failed five times: this one ran
    job_complete(job.job_id, slurm_conf.slurm_user_id, job.details && job.details->requeue, true, 1);
}

/// As `scontrol requeue` does with a job that has ended, or is about to. Under the same locks.
inline void requeue_ended(job_record_t& job) {
    job_requeue(slurm_conf.slurm_user_id, job.job_id, nullptr, false, 0);
}

/// Slurm starts it anew at once, on its own: --requeue=expedite, from 25.11 on.
inline bool starts_again_by_itself([[maybe_unused]] const job_record_t& job) {
#ifdef EXPEDITED_REQUEUE
    return job.bit_flags & EXPEDITED_REQUEUE;
#else
    return false;
#endif
}

}  // namespace banyan::slurm
