// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which node has which slot of a training whose nodes are others than those of its plan: a spare has come in
// for one, or the training goes on with fewer.
#pragma once

#include <string>
#include <vector>

#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// The numbers of the training on the nodes that the job has left: all of it, or what --train-min-dp allows.
topo::request request_now(const job_record_t& job, const job_request& asked);

/// `names` by slot: each node that has a slot in the job's plan keeps it, and the fabric says which of the
/// others comes in where. The job's plan follows. Empty, and the reason in the log, where no order is known.
/// `request`: that of request_now, with as many nodes as there are names.
std::vector<std::string> settle_slots(job_record_t& job, const job_request& asked,
                                      const topo::request& request, const std::vector<std::string>& names);

/// For select_p_job_begin of a job whose allocation srun makes for one step: the step's tasks are laid out
/// over the nodes in the order of the slots, where this Slurm knows one. srun asks for blocks
/// (spank/srun_step.cpp).
void order_own_step(job_record_t& job);

/// A node has left the job: the plan goes on with the first of its nodes and spares that the job still has.
void follow_nodes(job_record_t& job);

}  // namespace banyan::slurm
