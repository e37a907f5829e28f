// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm's internal headers, and every difference between the releases that banyan supports. Each release has
// a file here, and exactly one is included; sources.cmake names what it compiles. Nothing else in
// slurmctld-plugin/ tests a version. A release's file has
//
//   the headers                    where this release keeps them
//   list_ptr, list_iterator_ptr, hostlist_ptr, excluded_ptr
//   BANYAN_SELECT_TABLE            the functions of a select plugin (select_rows.hpp)
//   BANYAN_WILL_RUN_*              job_test's last parameter
//   BANYAN_WHY_*                   job_modify's last parameter: where it tells a user why
//   our_id, loads_one_select_plugin
//   memory_is_counted              by the site's SelectTypeParameters
//   complete_lost                  the job lost its node, and is requeued or ends: Slurm's job_complete
//   requeue_ended                  as `scontrol requeue` does with a job that has ended, or is about to
//   starts_again_by_itself         Slurm starts a requeued job at once: --requeue=expedite
//   forget_preemption              a run that begins was not preempted
//   expedite                       such a job is requeued, since it lost a node: it comes before all others,
//                                  and its nodes are nobody's meanwhile
//   order_nodes                    the order in which a step whose tasks are laid out in blocks has them
//   leave_step_manager             slurmctld makes the job's steps, and hears of their lost nodes
//   steps_follow_a_shrinking_job, end_finished_steps, note_broken_steps
//                                  what Slurm forgets of the steps of a job that loses a node
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config.h"
#include "slurm/slurm_version.h"

#define BANYAN_SLURM_IS(major, minor)                              \
    (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0) && \
     SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(major, (minor) + 1, 0))
#if BANYAN_SLURM_IS(22, 5)
#include "slurmctld-plugin/release/v22_05.hpp"
#elif BANYAN_SLURM_IS(24, 11)
#include "slurmctld-plugin/release/v24_11.hpp"
#elif BANYAN_SLURM_IS(25, 5)
#include "slurmctld-plugin/release/v25_05.hpp"
#elif BANYAN_SLURM_IS(25, 11)
#include "slurmctld-plugin/release/v25_11.hpp"
#elif BANYAN_SLURM_IS(26, 5)
#include "slurmctld-plugin/release/v26_05.hpp"
#else
#error \
    "banyan knows Slurm 22.05, 24.11, 25.05, 25.11 and 26.05; another release needs a file of its own in slurmctld-plugin/release/"
#endif
// Macros that would spoil C++ after this point, such as std::expected's error().
#undef error
#undef info
#undef debug
#undef fatal
#undef verbose
#undef max
#undef min

#define BANYAN_SELECT_TYPE "select/cons_tres_banyan"

namespace banyan::slurm {

constexpr std::string_view our_type = BANYAN_SELECT_TYPE;
constexpr std::uint32_t cons_tres_id = SELECT_PLUGIN_CONS_TRES;

/// What of job_test's mode says why it is asked.
enum class test_mode { run_now, test_only, will_run };
inline test_mode mode_of(std::uint16_t mode) {
    if (SELECT_IS_MODE_TEST_ONLY(mode)) return test_mode::test_only;
    if (SELECT_IS_MODE_WILL_RUN(mode)) return test_mode::will_run;
    return test_mode::run_now;
}

}  // namespace banyan::slurm
