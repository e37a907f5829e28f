// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/step_end.hpp"

#include <vector>

#include "slurmctld-plugin/job_request.hpp"

namespace banyan::slurm {
namespace {

constexpr std::uint32_t killed = 9;  // what Slurm writes down for a node that is lost

bool through(const step_record_t& step) {
    return step.state == JOB_RUNNING && step.step_id.step_id < SLURM_MAX_NORMAL_STEP_ID &&
           step.exit_node_bitmap && bit_clear_count(step.exit_node_bitmap) == 0;
}

}  // namespace

void end_finished_steps(job_record_t& job) {
    const auto request = request_of(job);
    if (!request || !*request || !job.step_list) return;
    std::vector<slurm_step_id_t> ended;
    const auto look = [](void* item, void* out) {
        const auto& step = *static_cast<step_record_t*>(item);
        if (through(step)) static_cast<std::vector<slurm_step_id_t>*>(out)->push_back(step.step_id);
        return 0;
    };
    list_for_each(job.step_list, look, &ended);
    for (const auto& id : ended) {
        // The same word once more, with which slurmctld does what follows the last one.
        step_complete_msg_t last{};
        last.step_id = id;
        last.step_rc = killed;
        int left = 0;
        step_partial_comp(&last, 0, true, &left, nullptr);
    }
}

}  // namespace banyan::slurm
