// SPDX-License-Identifier: BSD-3-Clause
//
// libslurm's public headers for train, fault, supervisor and spank, and what differs between its releases, in
// this one file. The functions return what Slurm's own do, and block as they do.
#pragma once

#include <cerrno>
#include <cstdint>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <unistd.h>

/// Slurm exports it, and names it beside slurm_job_will_run2(), but declares it in no public header.
extern "C" void slurm_free_will_run_response_msg(will_run_response_msg_t* answer);

namespace banyan::libslurm {

constexpr bool is_at_least(std::uint32_t year, std::uint32_t month) {
    return SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(year, month, 0);
}
static_assert(is_at_least(22, 5), "older releases lack slurm_step_id_t's component");

#define BANYAN_LIBSLURM_AT_LEAST(year, month) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(year, month, 0))

/// slurmctld asks its plugin about each step, which orders that of an allocation that srun makes itself:
/// nobody knows its nodes when srun asks.
constexpr bool slurmctld_orders_ranks = !is_at_least(25, 5);
/// slurmctld lays the tasks of such a step out over the nodes in an order of its plugin's, in blocks.
constexpr bool slurmctld_orders_nodes = is_at_least(26, 5);

/// Of the latest call of this thread that failed.
inline int last_error() {
#if BANYAN_LIBSLURM_AT_LEAST(24, 11)
    return errno;
#else
    return slurm_get_errno();
#endif
}

/// By name: the members' number and order differ.
inline slurm_step_id_t step_id(std::uint32_t job, std::uint32_t step = NO_VAL,
                               std::uint32_t component = NO_VAL) {
    slurm_step_id_t out{};
    out.job_id = job;
    out.step_het_comp = component;
    out.step_id = step;
    return out;
}

/// How the calls name a job.
#if BANYAN_LIBSLURM_AT_LEAST(26, 5)
inline slurm_step_id_t job_id(std::uint32_t job) { return step_id(job); }
#else
inline std::uint32_t job_id(std::uint32_t job) { return job; }
#endif

inline int load_job(job_info_msg_t** answer, std::uint32_t job) {
    return slurm_load_job(answer, job_id(job), SHOW_ALL);
}

inline int load_steps(job_step_info_response_msg_t** answer, std::uint32_t job) {
#if BANYAN_LIBSLURM_AT_LEAST(25, 11)
    auto of = step_id(job);
    return slurm_get_job_steps(&of, answer, SHOW_ALL);
#else
    return slurm_get_job_steps(0, job, NO_VAL, answer, SHOW_ALL);
#endif
}

inline int lookup_allocation(resource_allocation_response_msg_t** answer, std::uint32_t job) {
    return slurm_allocation_lookup(job_id(job), answer);
}

inline int requeue(std::uint32_t job) { return slurm_requeue(job_id(job), 0); }

/// `sbatch --requeue=expedite`: it starts when the nodes are free, without the two minutes that Slurm waits
/// else, and a start time of somebody's would only make that later.
inline bool starts_at_once([[maybe_unused]] const slurm_job_info_t& requeued) {
#if BANYAN_LIBSLURM_AT_LEAST(25, 11)
    return requeued.bitflags & EXPEDITED_REQUEUE;
#else
    return false;
#endif
}

inline int kill_step(std::uint32_t job, std::uint32_t step, std::uint16_t signal) {
#if BANYAN_LIBSLURM_AT_LEAST(25, 11)
    auto which = step_id(job, step);
    return slurm_kill_job_step(&which, signal, 0);
#elif BANYAN_LIBSLURM_AT_LEAST(23, 11)
    return slurm_kill_job_step(job, step, signal, 0);
#else
    return slurm_kill_job_step(job, step, signal);
#endif
}

/// `text` is not changed.
inline int notify_job(std::uint32_t job, char* text) { return slurm_notify_job(job_id(job), text); }

/// Which job slurm_update_job() is to change.
inline void name_job(job_desc_msg_t& change, std::uint32_t job) {
#if BANYAN_LIBSLURM_AT_LEAST(25, 11)
    change.step_id.job_id = job;
#else
    change.job_id = job;
#endif
}

/// A node's reason, by this process's user. `text` outlives `change`.
inline void set_reason(update_node_msg_t& change, char* text) {
    change.reason = text;
#if !BANYAN_LIBSLURM_AT_LEAST(26, 5)  // from then on slurmctld knows who asks
    change.reason_uid = ::getuid();
#endif
}

inline void free_conf(slurm_conf_t* conf) {
#if BANYAN_LIBSLURM_AT_LEAST(26, 5)
    slurm_free_conf(conf);
#else
    slurm_free_ctl_conf(conf);
#endif
}

}  // namespace banyan::libslurm
