// SPDX-License-Identifier: GPL-2.0-or-later
//
// The functions of a select plugin, as each release has them. A release that differs gets a table of its own
// here, and its differences in types in slurm_compat.hpp. Slurm takes a plugin only with every one of them
// (node_select_syms of its select.c), and finds them by name in our object alone.
//
//   OURS(name, member)                                  is defined in select/dispatch.cpp
//   THEIRS(name, member, result, parameters, arguments) goes to select/cons_tres as it came
//
// `name` lacks the prefix select_p_; `member` is that of slurm_select_ops_t.
#pragma once

#include "slurmctld-plugin/slurm_compat.hpp"

// clang-format off
#define BANYAN_SELECT_TABLE(OURS, THEIRS)                                                                        \
    THEIRS(state_save, state_save, int, (char* folder), (folder))                                                \
    THEIRS(state_restore, state_restore, int, (char* folder), (folder))                                          \
    OURS(job_init, job_init)                                                                                     \
    THEIRS(node_init, node_init, int, (), ())                                                                    \
    OURS(job_test, job_test)                                                                                     \
    OURS(job_begin, job_begin)                                                                                   \
    THEIRS(job_ready, job_ready, int, (job_record_t* job), (job))                                                \
    THEIRS(job_expand, job_expand, int, (job_record_t* from, job_record_t* to), (from, to))                      \
    OURS(job_resized, job_resized)                                                                               \
    THEIRS(job_signal, job_signal, int, (job_record_t* job, int signal), (job, signal))                          \
    OURS(job_fini, job_fini)                                                                                     \
    THEIRS(job_suspend, job_suspend, int, (job_record_t* job, bool indefinitely), (job, indefinitely))           \
    THEIRS(job_resume, job_resume, int, (job_record_t* job, bool indefinitely), (job, indefinitely))             \
    OURS(step_pick_nodes, step_pick_nodes)                                                                       \
    OURS(step_start, step_start)                                                                                 \
    THEIRS(step_finish, step_finish, int, (step_record_t* step, bool killing), (step, killing))                  \
    THEIRS(select_nodeinfo_pack, nodeinfo_pack, int,                                                             \
           (select_nodeinfo_t* node, buf_t* buffer, std::uint16_t protocol), (node, buffer, protocol))           \
    THEIRS(select_nodeinfo_unpack, nodeinfo_unpack, int,                                                         \
           (select_nodeinfo_t** node, buf_t* buffer, std::uint16_t protocol), (node, buffer, protocol))          \
    THEIRS(select_nodeinfo_alloc, nodeinfo_alloc, select_nodeinfo_t*, (), ())                                    \
    THEIRS(select_nodeinfo_free, nodeinfo_free, int, (select_nodeinfo_t* node), (node))                          \
    THEIRS(select_nodeinfo_set_all, nodeinfo_set_all, int, (), ())                                               \
    THEIRS(select_nodeinfo_set, nodeinfo_set, int, (job_record_t* job), (job))                                   \
    THEIRS(select_nodeinfo_get, nodeinfo_get, int,                                                               \
           (select_nodeinfo_t* node, enum select_nodedata_type what, enum node_states state, void* data),        \
           (node, what, state, data))                                                                            \
    THEIRS(select_jobinfo_alloc, jobinfo_alloc, select_jobinfo_t*, (), ())                                       \
    THEIRS(select_jobinfo_free, jobinfo_free, int, (select_jobinfo_t* job), (job))                               \
    THEIRS(select_jobinfo_set, jobinfo_set, int,                                                                 \
           (select_jobinfo_t* job, enum select_jobdata_type what, void* data), (job, what, data))                \
    THEIRS(select_jobinfo_get, jobinfo_get, int,                                                                 \
           (select_jobinfo_t* job, enum select_jobdata_type what, void* data), (job, what, data))                \
    THEIRS(select_jobinfo_copy, jobinfo_copy, select_jobinfo_t*, (select_jobinfo_t* job), (job))                 \
    THEIRS(select_jobinfo_pack, jobinfo_pack, int,                                                               \
           (select_jobinfo_t* job, buf_t* buffer, std::uint16_t protocol), (job, buffer, protocol))              \
    THEIRS(select_jobinfo_unpack, jobinfo_unpack, int,                                                           \
           (select_jobinfo_t** job, buf_t* buffer, std::uint16_t protocol), (job, buffer, protocol))             \
    THEIRS(select_jobinfo_sprint, jobinfo_sprint, char*,                                                         \
           (select_jobinfo_t* job, char* text, std::size_t size, int mode), (job, text, size, mode))             \
    THEIRS(select_jobinfo_xstrdup, jobinfo_xstrdup, char*, (select_jobinfo_t* job, int mode), (job, mode))       \
    THEIRS(get_info_from_plugin, get_info_from_plugin, int,                                                      \
           (enum select_plugindata_info what, job_record_t* job, void* data), (what, job, data))                 \
    THEIRS(update_node_config, update_node_config, int, (int index), (index))                                    \
    OURS(reconfigure, reconfigure)                                                                               \
    THEIRS(resv_test, resv_test, bitstr_t*,                                                                      \
           (resv_desc_msg_t* reservation, std::uint32_t count, bitstr_t* available, bitstr_t** cores),           \
           (reservation, count, available, cores))
// clang-format on

extern "C" {
int select_p_job_init(List jobs);
int select_p_job_test(job_record_t* job, bitstr_t* node_bitmap, std::uint32_t min_nodes,
                      std::uint32_t max_nodes, std::uint32_t req_nodes, std::uint16_t mode,
                      List preemptee_candidates, List* preemptee_jobs, bitstr_t* excluded_cores);
int select_p_job_begin(job_record_t* job);
int select_p_job_fini(job_record_t* job);
bitstr_t* select_p_step_pick_nodes(job_record_t* job, select_jobinfo_t* info, std::uint32_t node_count,
                                   bitstr_t** avail_nodes);
int select_p_job_resized(job_record_t* job, node_record_t* node);
int select_p_step_start(step_record_t* step);
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
// The table is Slurm's own: as many functions, in its order, each of its type.
static_assert(sizeof(slurm_select_ops_t) == sizeof(std::uint32_t*) + sizeof(select_functions),
              "this release's select plugins have other functions: give it a table of its own");
#define BANYAN_CHECK_ROW(name, member, ...)                                                                 \
    static_assert(std::is_same_v<decltype(slurm_select_ops_t::member), decltype(select_functions::name)> && \
                      offsetof(slurm_select_ops_t, member) ==                                               \
                          sizeof(std::uint32_t*) + offsetof(select_functions, name),                        \
                  "select_p_" #name " is not as this release's select.h has it");
BANYAN_SELECT_TABLE(BANYAN_CHECK_ROW, BANYAN_CHECK_ROW)
#undef BANYAN_CHECK_ROW
#endif

}  // namespace banyan::slurm
