// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of a job whose node was taken out: left to banyan-run while enough nodes remain, else
// requeued, and a requeued one starts now rather than after Slurm's two minutes.
#pragma once

#include <chrono>
#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/clock.hpp"
#include "fault/config.hpp"
#include "fault/controller/holders.hpp"
#include "fault/controller/records.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

struct recovery_tools {
    asio::io_context& io;
    asio::thread_pool& pool;
    cluster& slurm;
    records& known;
    verification_limits limits;
    /// Nodes hold up the job in the recovery of incident `number`; `job` as it was when it ran.
    std::function<void(std::uint64_t number, const job_status& job, const holders& found)> held_up;
    bool dry_run = false;  ///< an earlier controller may have begun what this one follows: it only looks
};

/// Whether run `restarts` of the job is still there. To be asked right before the job is put back into the
/// queue: Slurm does that also to one that has ended, or is in another run, since.
task<result<bool>> still_runs(const recovery_tools& tools, std::uint32_t job, std::uint32_t restarts);

/// Follows the job of incident `number`, which was `before` when its node was taken out, until it is known
/// how it goes on, or for a few minutes. What it does and finds is recorded with the incident. The tools must
/// outlive the task. `ending_since`: its last step is being ended since then. True: the job is said to go on,
/// which is to be verified. `requeued`: it was put back into the queue for the incident.
task<bool> follow_job(const recovery_tools& tools, std::uint64_t number, job_status before,
                      clock::time_point ending_since = clock::now(), bool requeued = false);

}  // namespace banyan::fault
