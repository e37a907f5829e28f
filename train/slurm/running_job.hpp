// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "common/text.hpp"
#include "train/plan_without_select.hpp"
#include "train/slurm/libslurm.hpp"

namespace banyan::train {

/// What slurmctld tells of a job, for plan_without_select. `before` is for the caller to add.
inline result<running_job> running_job_of(const job_info_t& record) {
    running_job out;
    out.job = record.job_id;
    out.restart = record.restart_cnt;
    BANYAN_TRY(out.nodes, expand_hostlist(record.nodes ? record.nodes : ""));
    out.nodes_at_start = static_cast<std::uint32_t>(out.nodes.size());
    if (record.ntasks_per_node == 0 || record.ntasks_per_node >= NO_VAL16) return out;
    out.tasks_per_node = record.ntasks_per_node;
    // The number of tasks stays that of the submission, which counts the spares' (spank/submission.cpp).
    const auto nodes = record.num_tasks / out.tasks_per_node;
    if (record.num_tasks < NO_VAL && record.num_tasks % out.tasks_per_node == 0 && nodes > out.nodes_at_start)
        out.nodes_at_start = nodes;
    return out;
}

}  // namespace banyan::train
