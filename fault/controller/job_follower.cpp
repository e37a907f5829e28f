// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/job_follower.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"
#include "common/timer.hpp"

namespace banyan::fault {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds first_pause(20), longest_pause(250);
constexpr milliseconds untold_pause(2'000);        // at the longest, for what Slurm does not tell or do
constexpr std::chrono::hours followed_at_most(1);  // where slurmctld is away for most of it
constexpr std::chrono::seconds still_has(15);      // Slurm takes the node away within milliseconds
constexpr int most_start_tries = 40;

// A node refuses a job whose new credential is not of a later second than the end of its earlier run; clocks
// may differ by less than a second. That is why Slurm itself waits two minutes.
constexpr std::int64_t credential_gap_s = 2;

// What Slurm has a requeued job wait, and the clocks' difference.
constexpr std::int64_t slurms_own_wait_s = 125, of_no_matter_s = 5;

class job_follower {
  public:
    job_follower(const recovery_tools& tools, std::uint64_t number, std::string node, job_status before,
                 clock::time_point ending_since, bool requeued)
        : timer_(tools.io),
          tools_(tools),
          number_(number),
          node_(std::move(node)),
          before_(std::move(before)),
          target_(std::to_string(before_.id)),
          search_(before_, ending_since, {tools.limits.step, tools.limits.holding}),
          requeued_(requeued) {}

    /// True: it is said to go on. Time in which slurmctld does not answer does not count.
    task<bool> run() {
        const auto last = begun_ + followed_at_most;
        for (auto at = begun_; at - begun_ < tools_.limits.settling && at < last;) {
            const auto now =
                co_await run_blocking(tools_.pool, [this] { return tools_.slurm.job(before_.id); });
            if (co_await after(now) == next::end) co_return goes_on_;
            timer_.expires_after(pause_);
            co_await timer_.async_wait(as_result);
            pause_ = std::min(pause_ * 3 / 2, untold_.empty() ? longest_pause : untold_pause);
            const auto since = std::exchange(at, clock::now());
            if (!now) begun_ += at - since;
        }
        when_time_is_over();
        co_return false;
    }

  private:
    enum class next : std::uint8_t { look_again, end };

    task<next> after(result<job_status> now);
    task<next> while_running(job_status now);
    task<next> without_its_node(job_status now);
    task<next> requeue(std::string why);
    task<next> while_pending(job_status now);
    bool somebody_set(const job_status& now, std::time_t time);
    void when_time_is_over();
    std::string end_words(const job_status& now) const {
        return "ended" + (now.end.empty() ? "" : ": " + now.end) +
               (before_.may_requeue ? "" : "; it may not be requeued");
    }
    next conclude(std::string text, bool done) {
        tools_.known.record(number_, "job", target_, std::move(text), done);
        return next::end;
    }
    next goes_on(std::string text) {
        goes_on_ = true;
        return conclude(std::move(text), true);
    }

    timer timer_;
    const recovery_tools& tools_;
    const std::uint64_t number_;
    const std::string node_;
    const job_status before_;
    const std::string target_;
    holder_search search_;
    clock::time_point begun_ = clock::now();  // later by what does not count
    milliseconds pause_ = first_pause;
    bool requeued_, started_ = false, goes_on_ = false;
    std::time_t pending_since_ = 0;
    struct {
        std::uint32_t restarts = 0;
        std::int64_t begin = 0;
        bool known = false;
    } first_;  // the time that the job had when it was first seen to wait for this run
    int start_tries_ = 0;
    std::vector<std::string> still_ending_;  // nodes that at the last look had not ended the job's last run
    std::string untold_;  // what Slurm at the last look did not tell of a job that runs, or do to it, and why
};

task<job_follower::next> job_follower::after(result<job_status> now) {
    untold_.clear();
    still_ending_.clear();
    if (!now) {
        if (now.error().code == errc::not_found) co_return conclude("is gone from Slurm", true);
        co_return next::look_again;
    }
    if (now->phase == job_phase::ended) co_return conclude(end_words(*now), true);
    if (now->phase == job_phase::running) co_return co_await while_running(std::move(*now));
    if (now->phase == job_phase::completing) still_ending_ = now->nodes;
    if (const auto found = search_.look(*now, clock::now())) tools_.held_up(number_, before_, *found);
    if (now->phase == job_phase::pending) co_return co_await while_pending(std::move(*now));
    co_return next::look_again;
}

task<job_follower::next> job_follower::while_running(job_status now) {
    if (now.restarts > before_.restarts || pending_since_ != 0)
        co_return goes_on(fmt::format("runs again on {} nodes", now.nodes.size()));
    if (std::ranges::find(now.nodes, node_) != now.nodes.end()) {
        if (clock::now() - begun_ > still_has) co_return conclude("still holds the node: left alone", false);
        co_return next::look_again;
    }
    if (requeued_) co_return next::look_again;
    co_return co_await without_its_node(std::move(now));
}

/// The node has left the job, which still runs: on the nodes that are left, if they are enough.
task<job_follower::next> job_follower::without_its_node(job_status now) {
    const auto again =
        co_await run_blocking(tools_.pool, [this, &now] { return tools_.slurm.starts_again(now); });
    const auto needed =
        co_await run_blocking(tools_.pool, [this, &now] { return tools_.slurm.nodes_needed(now); });
    if (!needed || !again) {
        const auto& why = needed ? again.error() : needed.error();
        untold_ = why.text();
        if (why.code != errc::unavailable) co_return conclude(untold_ + ": left alone", false);
        co_return next::look_again;
    }
    const bool enough = !*needed || now.nodes.size() >= **needed;
    const auto left =
        fmt::format("{} nodes left{}", now.nodes.size(), *needed ? fmt::format(", {} needed", **needed) : "");
    // Slurm has the job on its nodes still: where nobody starts it again, the node had no rank.
    if (enough)
        co_return goes_on(fmt::format(
            "goes on: {}; {}", left,
            *again ? "banyan-run starts its step again" : "no banyan-run is there to start its step again"));
    if (!now.may_requeue) co_return conclude(left + ", and it may not be requeued", false);
    co_return co_await requeue(left);
}

task<job_follower::next> job_follower::requeue(std::string why) {
    if (tools_.dry_run) {
        tools_.known.record(number_, "requeue", target_, "dry run: would be requeued: " + why, false);
        co_return next::end;
    }
    const auto there = co_await still_runs(tools_, before_.id, before_.restarts);
    if (!there) untold_ = there.error().text();
    if (!there || !*there) co_return next::look_again;
    const auto done = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.requeue(before_.id); });
    if (!done) {
        untold_ = "not requeued: " + done.error().text();
        co_return next::look_again;
    }
    tools_.known.record(number_, "requeue", target_, std::move(why), true);
    requeued_ = true;
    pause_ = first_pause;
    co_return next::look_again;
}

/// Slurm, or its select plugin, gives a job a time when it comes back into the queue, and may move that
/// nearer. Any other that is still to come somebody wants: also the first one, where Slurm would not wait so
/// long.
bool job_follower::somebody_set(const job_status& now, std::time_t time) {
    if (!first_.known || first_.restarts != now.restarts) first_ = {now.restarts, now.begin_time, true};
    if (now.begin_time <= time + of_no_matter_s) return false;
    return now.begin_time != first_.begin || now.begin_time > time + slurms_own_wait_s;
}

/// Starts it as soon as its nodes would take it.
task<job_follower::next> job_follower::while_pending(job_status now) {
    if (!requeued_)
        tools_.known.record(number_, "job", target_, "is back in the queue: banyan-run or Slurm put it there",
                            true);
    requeued_ = true;
    const auto time = clock::wall_ms() / 1'000;
    if (pending_since_ == 0) pending_since_ = time;
    if (somebody_set(now, time))
        co_return conclude("waits for its StartTime, which is not the one that Slurm gave it: left alone",
                           true);
    const bool too_early = time < pending_since_ + credential_gap_s;
    if (!now.held.empty() && !too_early)
        co_return conclude(
            fmt::format("is held in the queue ({}): scontrol release {}", now.held, before_.id), false);
    const bool starts_anyway = now.start_time <= time + 1;
    if (tools_.dry_run || too_early || starts_anyway || start_tries_ == most_start_tries)
        co_return next::look_again;
    ++start_tries_;
    const auto done =
        co_await run_blocking(tools_.pool, [this] { return tools_.slurm.start_now(before_.id); });
    if (done && !started_) tools_.known.record(number_, "start_now", target_, "StartTime=now", true);
    if (done) started_ = true;
    if (!done && start_tries_ == most_start_tries)
        tools_.known.record(number_, "start_now", target_, done.error().text(), false);
    pause_ = first_pause;
    co_return next::look_again;
}

void job_follower::when_time_is_over() {
    if (!untold_.empty())
        conclude(untold_ + ": left alone", false);
    else if (started_)
        conclude("waits for free nodes", true);
    else if (!still_ending_.empty())
        conclude(
            fmt::format("did not settle in time: {} has not ended its last run, and it waits for that: look "
                        "there for a process that does not end",
                        compress_hostlist(still_ending_)),
            false);
    else
        conclude("did not settle in time: left alone", false);
}

}  // namespace

task<result<bool>> still_runs(const recovery_tools& tools, std::uint32_t job, std::uint32_t restarts) {
    const auto now = co_await run_blocking(tools.pool, [&tools, job] { return tools.slurm.job(job); });
    if (!now && now.error().code == errc::not_found) co_return false;
    if (!now) co_return std::unexpected(now.error());
    co_return now->phase == job_phase::running && now->restarts == restarts;
}

task<bool> follow_job(const recovery_tools& tools, std::uint64_t number, job_status before,
                      clock::time_point ending_since, bool requeued) {
    const auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return false;
    job_follower it(tools, number, incident->object.node, std::move(before), ending_since, requeued);
    const bool goes_on = co_await it.run();
    co_return goes_on;
}

}  // namespace banyan::fault
