// SPDX-License-Identifier: GPL-2.0-or-later
//
// The functions of a select plugin. Slurm takes a plugin only with every one that its release knows
// (node_select_syms of its select.c), and finds them by name in our object alone; each release's file names
// its groups of rows.
//
//   OURS(name, member)                                  is defined in select/
//   THEIRS(name, member, result, parameters, arguments) goes to select/cons_tres as it came
//
// `name` lacks the prefix select_p_; `member` is that of slurm_select_ops_t.
#pragma once

// clang-format off
// In every release.
#define BANYAN_ROWS_ALWAYS(OURS, THEIRS) \
    THEIRS(node_init, node_init, int, (), ()) \
    OURS(job_test, job_test) \
    OURS(job_begin, job_begin) \
    THEIRS(job_ready, job_ready, int, (job_record_t* job), (job)) \
    THEIRS(job_expand, job_expand, int, (job_record_t* from, job_record_t* to), (from, to)) \
    OURS(job_resized, job_resized) \
    OURS(job_fini, job_fini) \
    THEIRS(job_suspend, job_suspend, int, \
           (job_record_t* job, bool indefinitely), (job, indefinitely)) \
    THEIRS(job_resume, job_resume, int, (job_record_t* job, bool indefinitely), (job, indefinitely)) \
    THEIRS(select_nodeinfo_set_all, nodeinfo_set_all, int, (), ()) \
    THEIRS(select_nodeinfo_set, nodeinfo_set, int, (job_record_t* job), (job)) \
    OURS(reconfigure, reconfigure)

// Up to 24.11: steps, and what is packed for a job and for a node.
#define BANYAN_ROWS_OF_STEPS(OURS, THEIRS) \
    THEIRS(state_save, state_save, int, (char* folder), (folder)) \
    THEIRS(state_restore, state_restore, int, (char* folder), (folder)) \
    OURS(job_init, job_init) \
    OURS(step_pick_nodes, step_pick_nodes) \
    OURS(step_start, step_start) \
    THEIRS(step_finish, step_finish, int, (step_record_t* step, bool killing), (step, killing)) \
    THEIRS(select_nodeinfo_pack, nodeinfo_pack, int, \
           (select_nodeinfo_t* node, buf_t* buffer, std::uint16_t protocol), (node, buffer, protocol)) \
    THEIRS(select_nodeinfo_unpack, nodeinfo_unpack, int, \
           (select_nodeinfo_t** node, buf_t* buffer, std::uint16_t protocol), (node, buffer, protocol)) \
    THEIRS(select_nodeinfo_alloc, nodeinfo_alloc, select_nodeinfo_t*, (), ()) \
    THEIRS(select_nodeinfo_free, nodeinfo_free, int, (select_nodeinfo_t* node), (node)) \
    THEIRS(select_nodeinfo_get, nodeinfo_get, int, \
           (select_nodeinfo_t* node, enum select_nodedata_type what, enum node_states state, void* data), \
           (node, what, state, data)) \
    THEIRS(select_jobinfo_alloc, jobinfo_alloc, select_jobinfo_t*, (), ()) \
    THEIRS(select_jobinfo_free, jobinfo_free, int, (select_jobinfo_t* job), (job)) \
    THEIRS(select_jobinfo_set, jobinfo_set, int, \
           (select_jobinfo_t* job, enum select_jobdata_type what, void* data), (job, what, data)) \
    THEIRS(select_jobinfo_get, jobinfo_get, int, \
           (select_jobinfo_t* job, enum select_jobdata_type what, void* data), (job, what, data)) \
    THEIRS(select_jobinfo_copy, jobinfo_copy, select_jobinfo_t*, (select_jobinfo_t* job), (job)) \
    THEIRS(select_jobinfo_pack, jobinfo_pack, int, \
           (select_jobinfo_t* job, buf_t* buffer, std::uint16_t protocol), (job, buffer, protocol)) \
    THEIRS(select_jobinfo_unpack, jobinfo_unpack, int, \
           (select_jobinfo_t** job, buf_t* buffer, std::uint16_t protocol), (job, buffer, protocol)) \
    THEIRS(get_info_from_plugin, get_info_from_plugin, int, \
           (enum select_plugindata_info what, job_record_t* job, void* data), (what, job, data))

// In 22.05 alone.
#define BANYAN_ROWS_OF_22_05(OURS, THEIRS) \
    THEIRS(job_signal, job_signal, int, (job_record_t* job, int signal), (job, signal)) \
    THEIRS(select_jobinfo_sprint, jobinfo_sprint, char*, \
           (select_jobinfo_t* job, char* text, std::size_t size, int mode), (job, text, size, mode)) \
    THEIRS(select_jobinfo_xstrdup, jobinfo_xstrdup, char*, \
           (select_jobinfo_t* job, int mode), (job, mode)) \
    THEIRS(update_node_config, update_node_config, int, (int index), (index)) \
    THEIRS(resv_test, resv_test, bitstr_t*, \
           (resv_desc_msg_t* reservation, std::uint32_t count, bitstr_t* available, bitstr_t** cores), \
           (reservation, count, available, cores))
// clang-format on
