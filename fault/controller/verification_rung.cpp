// SPDX-License-Identifier: BSD-3-Clause
//
// The rung below: a job that gets no new step is requeued.
#include "fault/controller/verification_run.hpp"

namespace banyan::fault {

namespace {

constexpr std::string_view requeue_words = "no new step in ";

/// As the next rung: in whichever incident, by this controller or by an earlier one.
bool was_requeued(const std::map<std::uint64_t, incident>& all, const std::string& target,
                  std::int64_t since_ms) {
    return std::ranges::any_of(all, [&](const auto& known) {
        return std::ranges::any_of(known.second.actions, [&](const auto& a) {
            return a.what == "requeue" && a.target == target && a.at_ms >= since_ms &&
                   a.result.starts_with(requeue_words);
        });
    });
}

}  // namespace

/// Once for each failure: by whomever.
task<bool> verification_run::next_rung() {
    const auto within = tools_.limits.step.count() / 1000;
    const auto now = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.job(before_.id); });
    if (!now) {
        conclude("has no new step, and whether it was requeued is not known: " + now.error().text(), false);
        co_return false;
    }
    if (taken_over()) co_return false;
    if (anew(*now) || was_requeued(tools_.known.incidents().all(), target_, since_ms_)) {
        conclude(still_none, false);
        co_return false;
    }
    if (now->phase != job_phase::running) co_return co_await follow(false);
    if (!before_.may_requeue) {
        conclude(fmt::format("has no new step in {} s, and it may not be requeued: look at the job", within),
                 false);
        co_return false;
    }
    if (tools_.dry_run) {
        conclude(fmt::format("has no new step in {} s; dry run: it would be requeued", within), false);
        co_return false;
    }
    // A controller that ends before it could write down what it did would do it twice.
    tools_.known.record(number_, "requeue", target_, fmt::format("{}{} s", requeue_words, within), true);
    co_await tools_.known.save(number_);
    const auto there = co_await still_runs(tools_, before_.id, before_.restarts);
    if (there && !*there) {
        tools_.known.record(number_, "requeue", target_, "not done: its run is over", false);
        co_return co_await follow(false);
    }
    result<void> done = there ? result<void>{} : std::unexpected(there.error());
    if (there) done = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.requeue(before_.id); });
    if (!done) {
        tools_.known.record(number_, "requeue", target_, "not done: " + done.error().text(), false);
        co_return false;
    }
    co_return co_await follow(true);
}

/// Through the queue, or to its end. `requeued`: by us.
task<bool> verification_run::follow(bool requeued) {
    auto before = before_;
    co_await follow_job(tools_, number_, std::move(before), ending_since_, requeued);
    co_return true;
}

}  // namespace banyan::fault
