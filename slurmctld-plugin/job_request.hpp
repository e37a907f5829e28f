// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job of slurmctld as banyan sees it: what it asks for.
#pragma once

#include <optional>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"
#include "slurmctld-plugin/slurm_compat.hpp"
#include "train/options.hpp"

namespace banyan::slurm {

/// The placement request of a job; empty for a job without --train-parallel. An error says why it cannot be
/// placed.
result<std::optional<topo::request>> request_of(const job_record_t& job);

/// The same before the job exists. `tasks` etc. as in job_desc_msg_t: NO_VAL when not given.
result<std::optional<topo::request>> request_of(const job_desc_msg_t& job);

/// The options --train of a submission.
result<train::options> options_of(const job_desc_msg_t& job);

/// --train-wait of a job, in minutes.
std::uint32_t wait_minutes_of(const job_record_t& job);

}  // namespace banyan::slurm
