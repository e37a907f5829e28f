// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/shrink/exclusive_nodes.hpp"

namespace banyan::slurm {

void count_exclusive_job_down(const job_record_t& job, node_record_t& node, const ctld_tables& ctld) {
    const auto* left = &job;
    // One that is suspended was counted down when it was.
    if (!job.details || job.details->share_res != 0 || !IS_JOB_RUNNING(left)) return;
    // Jobs with nodes of their own are alone there: whoever is still counted has gone.
    if (node.no_share_job_cnt == 0 || node.run_job_cnt >= node.no_share_job_cnt) return;
    if (--node.no_share_job_cnt == 0) bit_set(ctld.share_nodes(), node.index);
}

}  // namespace banyan::slurm
