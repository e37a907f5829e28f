// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of a job whose node was taken out: left to banyan-run while enough nodes remain, else
// requeued, and a requeued one starts now rather than after Slurm's two minutes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "fault/controller/records.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

/// Follows the job of incident `number`, which was `before` when its node was taken out, until it is known
/// how it goes on, or for a few minutes. What it does and finds is recorded with the incident. All that is
/// given by reference must outlive the task. True: the job is said to go on, which is to be verified.
task<bool> follow_job(asio::io_context& io, asio::thread_pool& pool, cluster& slurm, records& known,
                      std::uint64_t number, job_status before);

}  // namespace banyan::fault
