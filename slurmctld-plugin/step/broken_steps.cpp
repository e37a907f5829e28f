// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/broken_steps.hpp"

#include <algorithm>
#include <ctime>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"

namespace banyan::slurm {
namespace {

bool runs(const step_record_t& step) {
    return step.state == JOB_RUNNING && step.step_id.step_id < SLURM_MAX_NORMAL_STEP_ID &&
           step.step_node_bitmap;
}

/// A step that Slurm has killed since one of its nodes is lost.
struct broken_step {
    std::uint32_t job, restart, step;
    std::time_t in_the_way_since;  ///< 0: no other was asked for yet
};

/// In memory alone: with a restart of slurmctld they are forgotten, and end by themselves, later.
std::deque<broken_step>& broken_steps() {
    static std::deque<broken_step> known;
    return known;
}

/// For how long another one was asked for; none of a step that is not broken.
std::optional<std::time_t> in_the_way_for(const job_record_t& job, const step_record_t& step) {
    const auto known = std::ranges::find_if(broken_steps(), [&](const auto& b) {
        return b.job == job.job_id && b.restart == job.restart_cnt && b.step == step.step_id.step_id;
    });
    if (known == broken_steps().end()) return std::nullopt;
    const auto now = std::time(nullptr);
    if (known->in_the_way_since == 0) known->in_the_way_since = now;
    return now - known->in_the_way_since;
}

}  // namespace

void say_it_is_through(const slurm_step_id_t& step, std::uint32_t nodes) {
    constexpr std::uint32_t killed = 9;  // what Slurm writes down for a node that is lost
    step_complete_msg_t last{};
    last.step_id = step;
    last.range_last = nodes - 1;
    last.step_rc = killed;
    int left = 0;
    step_partial_comp(&last, 0, true, &left, nullptr);
}

void note_broken_steps(const job_record_t& job, const node_record_t& node) {
    constexpr std::size_t most = 1024;
    const auto* lost = &node;
    // From a node that is given away a step is only withdrawn: it runs on.
    if (!IS_NODE_DOWN(lost) || !job.step_list) return;
    for (const auto* step : entries<step_record_t>(job.step_list)) {
        if (!runs(*step) || (step->flags & SSF_NO_KILL) || !bit_test(step->step_node_bitmap, node.index))
            continue;
        broken_steps().push_back({job.job_id, job.restart_cnt, step->step_id.step_id, 0});
        if (broken_steps().size() > most) broken_steps().pop_front();
    }
}

void end_broken_steps(job_record_t& job) {
    constexpr std::time_t dying_s = 1;
    if (broken_steps().empty() || !job.step_list) return;
    const auto request = request_of(job);
    if (!request || !*request) return;
    std::vector<std::pair<slurm_step_id_t, std::uint32_t>> ended;
    for (const auto* step : entries<step_record_t>(job.step_list))
        if (runs(*step) && in_the_way_for(job, *step).value_or(0) >= dying_s)
            ended.emplace_back(step->step_id,
                               static_cast<std::uint32_t>(bit_set_count(step->step_node_bitmap)));
    for (const auto& [id, nodes] : ended) {
        log_job_once(job.job_id,
                     "a step that lost a node has not ended on the word of the others: it is over");
        say_it_is_through(id, nodes);
    }
}

}  // namespace banyan::slurm
