// SPDX-License-Identifier: BSD-3-Clause
//
// Which ranks of its jobs run on an incident's node. Asked before anything is done: with its node a job
// loses the step that could be asked.
#pragma once

#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "fault/controller/records.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

/// Writes them into the incident, for those of `jobs` that it names; each run of a job is found once, and
/// what cannot be known is written as that. `jobs` as Slurm told of them just now.
task<void> note_ranks(records& known, asio::thread_pool& pool, cluster& slurm, std::uint64_t number,
                      std::vector<job_status> jobs);

}  // namespace banyan::fault
