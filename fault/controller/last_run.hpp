// SPDX-License-Identifier: BSD-3-Clause
//
// Where the last run of a job has not ended: node by node, and only what a node tells is believed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

struct last_run {
    std::size_t asked = 0;             ///< nodes
    std::vector<std::string> holding;  ///< processes of it are left there
    std::vector<std::string> silent;   ///< their slurmd takes the question, and does not answer
    std::vector<std::string> unknown;  ///< could not be looked at
    std::string why;                   ///< of one of them
};

/// The steps of `job`, as it is now, that had the node `lost`: those of a run that has not lost it are none
/// of its last run. Where no node was lost, that is `ended_step` alone, and `lost` may hold it up, too. Nor
/// are the steps of helpers, which are smaller than the job needs. Empty: the job is not what it was when the
/// look began, so that nothing is known of it. Blocks, for a minute at most and one node.
result<std::optional<last_run>> look_at_last_run(cluster& slurm, const job_status& job,
                                                 const std::string& lost,
                                                 std::optional<std::uint32_t> ended_step = {});

}  // namespace banyan::fault
