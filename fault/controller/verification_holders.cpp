// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes that keep a job from its next step.
#include "common/clock.hpp"
#include "fault/controller/last_run.hpp"
#include "fault/controller/verification_run.hpp"

namespace banyan::fault {

/// Nodes that do not end the step which had the lost node.
task<verification_run::look_back> verification_run::find_holders() {
    const auto now = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.job(before_.id); });
    if (now && anew(*now)) co_return look_back::nobody;  // its last run has ended everywhere
    result<std::optional<last_run>> seen =
        now ? result<std::optional<last_run>>() : std::unexpected(now.error());
    if (now)
        seen = co_await run_blocking(
            tools_.pool, [this, &now] { return look_at_last_run(tools_.slurm, *now, node_, ended_step_); });
    if (!tools_.others->follows(before_.id, number_)) co_return look_back::not_known;
    if (seen && !*seen) co_return look_back::not_known;  // it goes on meanwhile, or waits in the queue
    holders found;
    if (seen)
        found = judge_last_run(**seen);
    else
        found.why_not = seen.error().text();
    if (found.where.empty() && found.why_not.empty()) co_return look_back::nobody;
    bool put_off = false;  // it is looked at anew, and may be so then
    if (found.taken_out && !(*seen)->silent.empty())
        if (const auto other = tools_.others->silence_shared(before_.id, clock::now())) {
            put_off = true;
            found.taken_out = false;
            found.why_not = fmt::format(
                "Nodes of job {} said nothing a short while ago, either: the network or the controller may "
                "be the "
                "cause, and none is taken out for now",
                *other);
        }
    const bool known = seen && (*seen)->unknown.empty() && !put_off;
    // What is looked at again and again is said once.
    if (known || found != doubt_) tools_.held_up(number_, before_, found);
    if (!known) doubt_ = found;
    co_return found.taken_out ? look_back::taken_out : known ? look_back::left_alone : look_back::not_known;
}

/// What was said of nodes that hold up the job, and not acted on, is no longer so.
void verification_run::none_stuck() {
    for (const auto& [number, i] : tools_.known.incidents().all()) {
        const bool of_job = std::ranges::find(i.jobs, before_.id) != i.jobs.end();
        if (i.reason != stuck_reason || i.closed_ms != 0 || i.node_out_ms != 0 || !of_job) continue;
        auto* found = tools_.known.incidents().find(number);
        found->closed_ms = clock::wall_ms();
        found->closed_by = fmt::format("the node: job {} has a new step", before_.id);
        tools_.known.save_soon(number);
    }
}

}  // namespace banyan::fault
