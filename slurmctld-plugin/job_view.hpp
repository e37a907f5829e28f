// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job of slurmctld as banyan sees it: what it asks for, and the plan of its ranks. The plan lives in the
// job's SPANK environment: slurmctld saves that with the job, so it survives restarts and takeovers, and
// hands it to every node's prolog.
#pragma once

#include <optional>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/plan.hpp>

#include "common/result.hpp"
#include "slurm_compat.hpp"

namespace banyan::slurm {

/// The placement request of a job; empty for a job without --train-parallel. An error says why it cannot be
/// placed.
result<std::optional<topo::request>> request_of(const job_record_t& job);

/// The same before the job exists. `tasks` etc. as in job_desc_msg_t: NO_VAL when not given.
result<std::optional<topo::request>> request_of(const job_desc_msg_t& job);

/// --train-wait of a job, in minutes.
std::uint32_t wait_minutes_of(const job_record_t& job);

/// Removes a plan that the submitter smuggled in: root's prolog acts on the plan, so only slurmctld may write
/// it.
void forget_plan(job_desc_msg_t& job);

/// The plan stored with the job by store_plan; empty when there is none or it is not readable.
std::optional<topo::plan> stored_plan(const job_record_t& job);

/// Replaces the job's plan and its AdminComment line. `groups_text` is for people: how the ranks sit on the
/// fabric.
void store_plan(job_record_t& job, const topo::plan& plan, const std::string& admin_comment);

}  // namespace banyan::slurm
