// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a training job asks for. Read once in each call of slurmctld, and handed down.
#pragma once

#include <optional>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"
#include "slurmctld-plugin/release/release.hpp"
#include "train/options.hpp"

namespace banyan::slurm {

struct job_request {
    train::options options;       ///< as they were given
    topo::request placement;      ///< what follows from them and from the numbers of nodes, tasks and GPUs
    std::uint32_t min_nodes = 0;  ///< that may run ranks when others are lost; 0 = all of `placement`
};

/// Empty for a job without --train-parallel. An error says why it cannot be placed.
result<std::optional<job_request>> request_of(const job_record_t& job);

/// The same before the job exists.
result<std::optional<job_request>> request_of(const job_desc_msg_t& job);

/// srun made the allocation, for one step. A user may say so of another: his own nodes are ordered.
bool is_for_one_step(const job_record_t& job);

}  // namespace banyan::slurm
