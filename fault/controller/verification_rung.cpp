// SPDX-License-Identifier: BSD-3-Clause
//
// The rung below: a job that gets no new step is requeued.
#include "common/clock.hpp"
#include "fault/controller/verification_run.hpp"

namespace banyan::fault {

namespace {

constexpr std::string_view requeue_words = "no new step in ";

/// As the next rung, by this controller or by an earlier one.
bool is_requeued(const incident& i, const std::string& target, std::int64_t since_ms) {
    return std::ranges::any_of(i.actions, [&](const auto& a) {
        return a.what == "requeue" && a.target == target && a.at_ms >= since_ms &&
               a.result.starts_with(requeue_words);
    });
}

}  // namespace

/// Once for each failure: by whomever. What was written down may not have been done: a run that is still
/// there was not requeued.
task<bool> verification_run::next_rung() {
    const auto within = tools_.limits.step.count() / 1000;
    const auto now = co_await look_until_told();
    if (taken_over()) co_return false;
    if (!now) co_return co_await follow(false);
    const auto& all = tools_.known.incidents().all();
    const bool by_another = std::ranges::any_of(all, [this](const auto& known) {
        return known.first != number_ && is_requeued(known.second, target_, since_ms_);
    });
    if (anew(*now) || by_another) {
        conclude(still_none, false);
        co_return false;
    }
    const auto* own = tools_.known.incidents().find(number_);
    const bool written = own && is_requeued(*own, target_, since_ms_);
    if (now->phase != job_phase::running) co_return co_await follow(written);
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
    if (!written) {
        tools_.known.record(number_, "requeue", target_, fmt::format("{}{} s", requeue_words, within), true);
        co_await tools_.known.save(number_);
    }
    co_return co_await put_into_queue();
}

/// Slurm may be busy, or away: it is asked again, for as long as a step is waited for, and the time in which
/// it tells nothing of the job does not count.
task<bool> verification_run::put_into_queue() {
    bool asked = false;
    auto until = clock::now() + tools_.limits.step;
    for (;;) {
        const auto there = co_await still_runs(tools_, before_.id, before_.restarts);
        if (there && !*there) {
            if (!asked) tools_.known.record(number_, "requeue", target_, "not done: its run is over", false);
            co_return co_await follow(asked);
        }
        result<void> done = there ? result<void>{} : std::unexpected(there.error());
        if (there)
            done = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.requeue(before_.id); });
        if (done) co_return co_await follow(true);
        if (there) asked = true;
        if (!there) until = clock::now() + tools_.limits.step;
        if (clock::now() > until) {
            tools_.known.record(number_, "requeue", target_, "not done: " + done.error().text(), false);
            co_return false;
        }
        timer_.expires_after(pause_ * 4);
        co_await timer_.async_wait(as_result);
        if (taken_over()) co_return false;
    }
}

/// Through the queue, or to its end. `requeued`: by us.
task<bool> verification_run::follow(bool requeued) {
    auto before = before_;
    co_await follow_job(tools_, number_, std::move(before), ending_since_, requeued);
    co_return true;
}

}  // namespace banyan::fault
