// SPDX-License-Identifier: BSD-3-Clause
//
// From one phase of a recovery to the next, and the first of them: a new step.
#include "fault/controller/verification_run.hpp"

#include "common/clock.hpp"

namespace banyan::fault {

using std::chrono::milliseconds;

namespace {

/// For nodes that hold up a job, where it could not be seen which, or what was seen was another job's too a
/// short while ago: a minute and the time of a step apart. Together they take longer than that is waited for.
constexpr int most_looks = 10;
/// Where Slurm tells of the job, and not of its steps.
constexpr std::chrono::minutes longest_untold(5);

}  // namespace

task<result<job_status>> verification_run::look() {
    timer_.expires_after(pause_);
    co_await timer_.async_wait(as_result);
    auto out = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.job(before_.id); });
    co_return out;
}

task<result<job_status>> verification_run::look_until_told() {
    auto now = co_await look();
    while (!now && now.error().code != errc::not_found && tools_.others->follows(before_.id, number_))
        now = co_await look();
    co_return now;
}

/// Helpers run beside the training, in steps of their own. It is the step of which Slurm says so; else one
/// that is no smaller than the job needs, for its user may have asked srun for other tasks than the plan has.
/// An error: that was not told.
task<result<std::optional<step_status>>> verification_run::training_of(job_status now,
                                                                       std::vector<step_status> among) {
    const bool node_stays = ended_step_ && !anew(now);
    if (!node_stays) {
        const auto needed =
            co_await run_blocking(tools_.pool, [&] { return tools_.slurm.nodes_needed(now); });
        if (!needed && needed.error().code == errc::unavailable) co_return std::unexpected(needed.error());
        if (needed && !*needed) co_return among.front();  // it was placed without a plan
        if (needed) std::erase_if(among, [&](const auto& s) { return s.nodes.size() < **needed; });
    }
    for (const auto& step : among) {
        const auto node = node_stays || step.nodes.empty() ? node_ : step.nodes.front();
        const auto training =
            co_await run_blocking(tools_.pool, [&] { return tools_.slurm.ranks_on(now, node); });
        if (!training && training.error().code == errc::unavailable)
            co_return std::unexpected(training.error());
        if (!training) continue;
        const auto its = std::ranges::find(among, training->step, &step_status::id);
        if (its != among.end()) co_return *its;
    }
    if (node_stays || among.empty()) co_return std::nullopt;
    co_return among.front();
}

/// An error: slurmctld did not tell.
task<result<std::optional<step_status>>> verification_run::new_step(job_status now) {
    BANYAN_CO_TRY(auto steps,
                  co_await run_blocking(tools_.pool, [this] { return tools_.slurm.steps(before_.id); }));
    std::erase_if(steps, [&](const step_status& s) {
        // One that runs again may have the node, too: it was seen to, and is back.
        if (anew(now)) return false;
        return ended_step_ ? s.id <= *ended_step_ : std::ranges::find(s.nodes, node_) != s.nodes.end();
    });
    if (steps.empty()) co_return std::nullopt;
    auto found = co_await training_of(std::move(now), std::move(steps));
    co_return found;
}

/// The training without the lost node; where the node stays, its next step; or that of a later run. Time in
/// which the job waits in the queue, or slurmctld does not answer, does not count.
task<verification_run::outcome> verification_run::await_step(clock::time_point since) {
    auto told = since;  // the last that was, of a job that runs
    while (clock::now() - since < tools_.limits.step) {
        const auto begun = clock::now();
        const auto now = co_await look();
        if (taken_over()) co_return outcome::over;
        if (!now && now.error().code == errc::not_found) co_return outcome::over;
        if (now && now->phase == job_phase::ended) {
            if (!queued_) conclude_ended(*now);  // else its follower has said so
            co_return outcome::over;
        }
        if (now && now->phase != job_phase::running && !queued_) {
            // By banyan-run or its user. Its last run may have to be ended first, and it is to start soon.
            queued_ = true;
            auto before = before_;
            co_await follow_job(tools_, number_, std::move(before), ending_since_);
        }
        if (!now) {
            // No more than this: it may fail now and then.
            const auto lost = clock::now() - begun;
            since += lost;
            told += lost;
            continue;
        }
        if (now->phase != job_phase::running) {
            since = told = clock::now();
            continue;
        }
        queued_ = false;
        auto found = co_await new_step(*now);
        if (found)
            told = clock::now();
        else if (clock::now() - told < longest_untold)
            since += clock::now() - begun;
        if (!found || !*found) continue;
        step_ = std::move(**found);
        step_ms_ = clock::wall_ms();
        co_return outcome::reached;
    }
    co_return outcome::too_late;
}

/// How long the job has had no new step: where it runs, not from before it started. Enough is left to see one
/// that begins just now.
milliseconds verification_run::already(std::int64_t since_ms, std::int64_t started_s) const {
    const milliseconds gone(clock::wall_ms() - std::max(since_ms, started_s * 1000));
    return std::clamp(gone, milliseconds(0), tools_.limits.step * 3 / 4);
}

task<void> verification_run::run() {
    before_training_ = co_await newest(before_.nodes);
    ending_since_ = clock::now();
    co_await verify();
}

task<void> verification_run::go_on() {
    const auto now = co_await look_until_told();
    ending_since_ = clock::now();
    if (now) ending_since_ -= already(since_ms_, now->phase == job_phase::running ? now->start_time : 0);
    co_await verify();
}

task<void> verification_run::verify() {
    auto way = co_await await_step(ending_since_);
    if (way == outcome::too_late) {
        auto found = co_await find_holders();
        for (int looks = 1; found == look_back::not_known && looks < most_looks; ++looks) {
            way = co_await await_step(clock::now());
            if (way != outcome::too_late) break;
            found = co_await find_holders();
        }
        if (way == outcome::too_late && found == look_back::not_known) {
            conclude(
                "has no new step, and which nodes have not ended its last run is not known: look at the "
                "job",
                false);
            co_return;
        }
        if (way == outcome::too_late && found == look_back::taken_out)
            way = co_await await_step(clock::now());
    }
    if (way == outcome::too_late) {
        const bool requeued = co_await next_rung();
        if (!requeued) co_return;
        way = co_await await_step(clock::now());
        if (way == outcome::too_late) conclude(still_none, false);
    }
    if (way == outcome::reached) {
        none_stuck();
        co_await await_training();
    }
}

}  // namespace banyan::fault
