// SPDX-License-Identifier: GPL-2.0-or-later
#include <vector>

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/step/broken_steps.hpp"

namespace banyan::slurm {

void end_finished_steps(job_record_t& job) {
    const auto request = request_of(job);
    if (!request || !*request || !job.step_list) return;
    std::vector<slurm_step_id_t> through;
    for (const auto* step : entries<step_record_t>(job.step_list))
        if (step->state == JOB_RUNNING && step->step_id.step_id < SLURM_MAX_NORMAL_STEP_ID &&
            step->exit_node_bitmap && bit_clear_count(step->exit_node_bitmap) == 0)
            through.push_back(step->step_id);
    for (const auto& step : through) say_it_is_through(step, 1);
}

}  // namespace banyan::slurm
