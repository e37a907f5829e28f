// SPDX-License-Identifier: BSD-3-Clause
//
// A job that has lost more nodes than it has spares goes back into the queue, whoever took the nodes. The
// fault daemon may ask for the same at the same moment: slurmctld takes one of the two, and this process does
// not outlive the run of the job that it belongs to.
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "supervisor/slurm/will_run.hpp"
#include "supervisor/supervisor.hpp"

namespace banyan::supervisor {

decision supervisor::requeue(situation& s, const decision& d) {
    const auto done = requeue_job(job_now_);
    if (!done && done.error().code == errc::unavailable)
        return {action::wait, d.idle_restarts, done.error().what};
    if (!done) {
        refused_ = s.now.no_requeue = done.error().what;
        return decide(s);
    }
    say(fmt::format("{}; {}; the job is requeued", end_line(s, step_ ? step_name() : ""), d.why));
    wait_for_the_end();
    return {action::finish, d.idle_restarts, {}};
}

/// A job that trains with fewer groups goes back into the queue where it would start at once with all of
/// them.
void supervisor::look_at_full_size() {
    if (!full_size_.is_near(clock::now())) return;
    if (!full_size_.is_due(clock::now(), newest_saved(socket_, job_))) return;
    auto job = query_job(job_);
    if (!job || !job->running || !job->no_requeue.empty() || job->nodes.size() >= plan_.nodes) return;
    const auto more = plan_.nodes_of_all - static_cast<std::uint32_t>(job->nodes.size());
    const auto could = could_have(job_, plan_.nodes_of_all, more);
    if (!could && could.error().code == errc::denied) {
        full_size_ = {};
        return say(could.error().text());
    }
    if (!could || !*could)
        return detail(could ? fmt::format("{} nodes more are not to be had, or others wait for them", more)
                            : could.error().text());
    job_now_ = std::move(*job);
    if (const auto done = requeue_job(job_now_); !done) {
        detail(done.error().text());
        if (done.error().code == errc::denied) full_size_ = {};
        return;
    }
    say(fmt::format("Slurm has {} nodes more: the job is requeued, to train with all of its {} ranks again",
                    more, plan_.ranks));
    wait_for_the_end();
}

/// The script that we run in must not go on: Slurm ends it, and us, since the job is requeued. Until then the
/// time of the next start is kept ahead of the end of this run. One that is ahead stays as it is: the select
/// plugin's, which moves it by itself and knows it by its value, or one that its user set meanwhile. A job
/// that starts at once needs none.
void supervisor::wait_for_the_end() {
    // Slurm tells its nodes within milliseconds; the rest is the end of processes, and the epilog.
    const std::uint32_t ahead_s = has_epilog() ? 30 : 10;
    constexpr std::chrono::seconds again{3}, longest{300};
    constexpr std::int64_t enough_s = again.count() + 2;  // until the next look, and for its answer
    const auto until = clock::now() + longest;
    if (job_now_.starts_at_once) {
        signals_.wait(until);
        return;
    }
    do {
        const auto begin = begin_time(job_now_);
        if (!begin && begin.error().code != errc::not_found) continue;
        if (begin && *begin > std::time(nullptr) + enough_s) continue;
        if (const auto set = start_in(job_now_, ahead_s); !set) {
            detail(set.error().text());
            say("Slurm itself chooses when the job may start again, usually after two minutes");
            signals_.wait(until);
            return;
        }
    } while (!signals_.wait(std::min(clock::now() + again, until)) && clock::now() < until);
}

}  // namespace banyan::supervisor
