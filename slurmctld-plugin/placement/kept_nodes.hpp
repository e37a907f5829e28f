// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job that trains with fewer data parallel groups than it asked for is requeued to have all of them. Its
// nodes are kept for it: where the others do not come, it goes on with those that it had.
#pragma once

#include <optional>

#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/placement/job_placement.hpp"

namespace banyan::slurm {

/// For a job that trains, and whose run ends for a requeue. Where it trains with fewer groups, no other job
/// starts on its nodes until it has started itself, or has waited too long; the bell is rung. A job that is
/// preempted gives its nodes up.
void keep_nodes(const job_record_t& job);

/// Takes the nodes that are kept for other jobs out of the candidates of a job that would start now. False:
/// the job cannot start without one of them.
bool leave_kept_nodes(const job_record_t& job, bitstr_t* candidates);

/// Starts a job that asks for fewer nodes, since it waited for all in vain: on those that it had. Returns
/// what cons_tres said, and nothing where the job asks for all.
std::optional<int> start_on_kept_nodes(job_record_t& job, const job_request& asked, const ctld_tables& ctld,
                                       bitstr_t* candidates, test_mode mode, const cons_tres& inner);

/// For select_p_job_begin: it asks for all of its nodes again.
void forget_kept_nodes(job_record_t& job);

/// slurmctld has read its state, which it saved while the job asked for fewer: the job asks for all again,
/// with a new priority.
void ask_for_all_nodes(job_record_t& job);

/// For the bell, under its locks. Whether nodes are kept.
bool look_at_kept_nodes();

}  // namespace banyan::slurm
