// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/step_end.hpp"

#include <array>
#include <ctime>
#include <vector>

#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"

namespace banyan::slurm {
namespace {

constexpr std::uint32_t killed = 9;  // what Slurm writes down for a node that is lost

bool through(const step_record_t& step) {
    return step.state == JOB_RUNNING && step.step_id.step_id < SLURM_MAX_NORMAL_STEP_ID &&
           step.exit_node_bitmap && bit_clear_count(step.exit_node_bitmap) == 0;
}

/// A step that Slurm ends since one of its nodes has left the job.
bool broken(const step_record_t& step) {
    return step.state == JOB_RUNNING && step.step_id.step_id < SLURM_MAX_NORMAL_STEP_ID &&
           !(step.flags & SSF_NO_KILL) && step.step_node_bitmap && step.job_ptr &&
           step.job_ptr->node_bitmap && !bit_super_set(step.step_node_bitmap, step.job_ptr->node_bitmap);
}

/// Since a step was first found in the way of another. In memory alone: a clash of two begins the count
/// again.
std::time_t in_the_way_for(const slurm_step_id_t& id, std::uint32_t restart) {
    struct entry {
        std::uint32_t job = 0, step = 0, restart = 0;
        std::time_t since = 0;
    };
    static std::array<entry, 256> known{};
    auto& e = known[id.job_id % known.size()];
    const auto now = std::time(nullptr);
    if (e.job != id.job_id || e.step != id.step_id || e.restart != restart)
        e = {id.job_id, id.step_id, restart, now};
    return now - e.since;
}

/// The word that the step is through on all of its nodes, with which slurmctld does what follows the last.
void say_it_is_through(const slurm_step_id_t& id, std::uint32_t nodes) {
    step_complete_msg_t last{};
    last.step_id = id;
    last.range_last = nodes - 1;
    last.step_rc = killed;
    int left = 0;
    step_partial_comp(&last, 0, true, &left, nullptr);
}

}  // namespace

void end_broken_steps(job_record_t& job) {
    constexpr std::time_t dying_s = 1;
    const auto request = request_of(job);
    if (!request || !*request || !job.step_list) return;
    struct found {
        slurm_step_id_t id;
        std::uint32_t nodes;
    };
    std::vector<found> ended;
    const auto look = [](void* item, void* out) {
        const auto& step = *static_cast<step_record_t*>(item);
        if (broken(step))
            static_cast<std::vector<found>*>(out)->push_back(
                {step.step_id, static_cast<std::uint32_t>(bit_set_count(step.step_node_bitmap))});
        return 0;
    };
    list_for_each(job.step_list, look, &ended);
    for (const auto& step : ended)
        if (in_the_way_for(step.id, job.restart_cnt) >= dying_s) {
            log_job_once(job.job_id, "a step that lost a node has not ended on the others' word: it is over");
            say_it_is_through(step.id, step.nodes);
        }
}

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
