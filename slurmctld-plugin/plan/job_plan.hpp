// SPDX-License-Identifier: GPL-2.0-or-later
//
// The plan of a job's ranks. It lives in the job's SPANK environment: slurmctld saves that with the job, so
// it survives restarts and takeovers, and hands it to every node's prolog. A user submits the same
// environment, so the plan is sealed (train/plan_seal.hpp): what slurmctld's user did not write for this
// very job is no plan, and goes away before the job starts.
#pragma once

#include <optional>

#include "common/result.hpp"
#include "slurmctld-plugin/release/release.hpp"
#include "train/plan.hpp"

namespace banyan::slurm {

/// The plan stored with the job by store_plan; empty when there is none or it is not ours.
std::optional<train::plan> stored_plan(const job_record_t& job);

/// Replaces the job's plan, and what others are told of it (published_plan.hpp). A plan that cannot be sealed
/// leaves the job without one; others are told of it all the same, for the job's numbers follow from it.
void store_plan(job_record_t& job, train::plan plan);

/// Removes what looks like a plan and is not ours. Cheap for a job without one.
void forget_foreign_plan(job_record_t& job);

/// What train/environment.hpp says of the job's environment without our plan.
result<void> check_environment(const job_record_t& job);

/// As forget_foreign_plan, for a job that starts now on its node_bitmap: besides, what was planned for a
/// start that did not come about goes, and a plan that was made before an array's task got its own job id is
/// made out to that.
void settle_plan(job_record_t& job);

}  // namespace banyan::slurm
