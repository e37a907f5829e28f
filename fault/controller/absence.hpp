// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes that died while no controller was there: their agents had one, do not come back to this one, and no
// connection ends that would tell. Nodes that never had an agent are none of them.
#pragma once

#include "fault/controller/hub.hpp"
#include "fault/controller/records.hpp"
#include "fault/controller/silence.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

struct absence_tools {
    asio::io_context& io;
    asio::thread_pool& pool;
    cluster& slurm;
    records& known;
    const hub& agents;
    silence_watch& watch;
};

/// Once, when the agents have had `time` to come back: those that are not here, and whose nodes a job has,
/// are watched as if their connections had ended then. What is given by reference must outlive it.
task<void> look_for_absent(absence_tools with, std::chrono::milliseconds time);

}  // namespace banyan::fault
