// SPDX-License-Identifier: GPL-2.0-or-later
//
// The functions of select/cons_tres, by this release's table (release/select_rows.hpp).
#pragma once

#include "slurmctld-plugin/release/release.hpp"

extern "C" {
int select_p_job_test(job_record_t* job, bitstr_t* node_bitmap, std::uint32_t min_nodes,
                      std::uint32_t max_nodes, std::uint32_t req_nodes, std::uint16_t mode,
                      banyan::slurm::list_ptr preemptee_candidates, banyan::slurm::list_ptr* preemptee_jobs,
                      banyan::slurm::excluded_ptr excluded BANYAN_WILL_RUN_PARAMETER);
int select_p_job_begin(job_record_t* job);
int select_p_job_fini(job_record_t* job);
int select_p_job_resized(job_record_t* job, node_record_t* node);
int select_p_reconfigure();
}

namespace banyan::slurm {

/// Every function of select/cons_tres that Slurm calls; none is null where an object of this exists.
struct select_functions {
#define BANYAN_OURS(name, member) decltype(&::select_p_##name) name;
#define BANYAN_THEIRS(name, member, result, parameters, arguments) result(*name) parameters;
    BANYAN_SELECT_TABLE(BANYAN_OURS, BANYAN_THEIRS)
#undef BANYAN_OURS
#undef BANYAN_THEIRS
};

#if BANYAN_SLURM_SHOWS_SELECT_OPS
// The table is Slurm's own: as many functions, each of its type.
static_assert(sizeof(slurm_select_ops_t) == sizeof(std::uint32_t*) + sizeof(select_functions),
              "this release's select plugins have other functions: give it a table of its own");
#define BANYAN_CHECK_ROW(name, member, ...)                                                               \
    static_assert(std::is_same_v<decltype(slurm_select_ops_t::member), decltype(select_functions::name)>, \
                  "select_p_" #name " is not as this release's select.h has it");
BANYAN_SELECT_TABLE(BANYAN_CHECK_ROW, BANYAN_CHECK_ROW)
#undef BANYAN_CHECK_ROW
#endif

}  // namespace banyan::slurm
