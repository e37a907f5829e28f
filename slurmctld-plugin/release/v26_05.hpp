// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm 26.05. Tried live: 26.05.3.
#pragma once

#include <algorithm>
#include <vector>

#include "slurmctld-plugin/release/since_25_11.hpp"

// clang-format off
#define BANYAN_SELECT_TABLE(OURS, THEIRS) \
    BANYAN_ROWS_ALWAYS(OURS, THEIRS) \
    THEIRS(job_mem_reduce, job_mem_reduce, void, (job_record_t* job), (job))
// clang-format on

namespace banyan::slurm {

/// `places`: of each node of the job, in the order of slurmctld's table; the step gets the lowest.
inline void order_nodes(job_record_t& job, const std::vector<std::uint32_t>& places) {
    auto& its = *job.job_resrcs;
    if (its.nhosts != places.size()) return;
    xfree(its.node_ranks);
    its.node_ranks = static_cast<std::uint32_t*>(xcalloc(places.size(), sizeof(std::uint32_t)));
    std::copy(places.begin(), places.end(), its.node_ranks);
}

}  // namespace banyan::slurm
