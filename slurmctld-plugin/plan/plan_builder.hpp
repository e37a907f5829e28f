// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job's plan when its nodes are chosen, or change: from a placement (host indices) to what is stored with
// the job (names and addresses).
#pragma once

#include <string_view>

#include <banyan/topo/placement.hpp>

#include "slurmctld-plugin/fabric/fabric_cache.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "train/plan.hpp"

namespace banyan::slurm {

/// Stores `placement` with the job as its plan, one generation after `before`, the plan that it has now.
/// `later`: what to say of a later start; when nothing is given that of the run's last plan stays.
void save_placement(job_record_t& job, const std::optional<train::plan>& before,
                    const fabric_cache::view& fabric, const ctld_tables& ctld, const topo::request& request,
                    const topo::placement& placement, std::optional<train::better_later> later = {});

/// The same where no fabric has the job's nodes: these are in Slurm's order, but for those that have a slot
/// in `before`. Logs, and stores none, where they are not as many as the job asks for. `why` is for the
/// AdminComment, a word.
void save_in_order(job_record_t& job, const std::optional<train::plan>& before, const ctld_tables& ctld,
                   const job_request& asked, const bitstr_t* nodes, std::string_view why);

/// The same for a run with fewer data parallel groups than all, on `nodes`, which have slots or wait as
/// spares in `before`, the plan of the last run.
void save_fewer(job_record_t& job, const train::plan& before, const ctld_tables& ctld,
                const job_request& asked, const bitstr_t* nodes);

/// The same where the fabric is of no help: the plan gets other nodes, slot by slot.
void save_nodes(job_record_t& job, const ctld_tables& ctld, train::plan plan,
                const std::vector<std::string>& nodes);

/// Whoever started the job's training step starts it again, or nobody does: that decides what the loss of a
/// node means.
void note_supervised(job_record_t& job, bool supervised);

/// `node` has left the job: the plan no longer names it as a spare, nor what is told of the plan.
void forget_spare(job_record_t& job, const node_record_t& node);

}  // namespace banyan::slurm
