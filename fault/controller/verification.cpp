// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/verification.hpp"

#include <algorithm>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "fault/sources/log_line.hpp"

namespace banyan::fault {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// Who is asked how far the training is: each daemon has heard of all ranks, but for those that just came in.
constexpr std::size_t daemons_asked = 4;
/// A training step may take minutes: who waits for longer than `soon` looks less often.
constexpr std::chrono::seconds soon(30);
constexpr milliseconds rare_pause(2'000);
/// For nodes that hold up a job, where it could not be seen which: a minute and the time of a step apart.
constexpr int most_looks = 10;
constexpr std::chrono::minutes silence_is_shared_for(5);

constexpr const char* still_none = "has no new step after it was requeued: look at the job";

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

double in_seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

class verification {
  public:
    verification(const verification_tools& tools, std::uint64_t number, std::string node, job_status before,
                 std::int64_t since_ms)
        : tools_(tools),
          timer_(tools.io),
          number_(number),
          node_(std::move(node)),
          before_(std::move(before)),
          target_(std::to_string(before_.id)),
          since_ms_(since_ms) {}

    task<void> run() {
        before_training_ = co_await newest(before_.nodes);
        ending_since_ = steady_clock::now();
        co_await verify();
    }

    /// What an earlier controller had begun.
    task<void> go_on() {
        auto now = co_await look();
        while (!now && now.error().code != errc::not_found) now = co_await look();
        ending_since_ = steady_clock::now();
        if (now) ending_since_ -= already(since_ms_, now->phase == job_phase::running ? now->start_time : 0);
        co_await verify();
    }

  private:
    enum class outcome : std::uint8_t { reached, too_late, over };
    /// not_known: whether a node holds up the job could not be looked at.
    enum class look_back : std::uint8_t { nobody, taken_out, left_alone, not_known };

    task<void> verify() {
        auto way = co_await await_step(ending_since_);
        if (way == outcome::too_late) {
            auto found = co_await find_holders();
            for (int looks = 1; found == look_back::not_known && looks < most_looks; ++looks) {
                way = co_await await_step(steady_clock::now());
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
                way = co_await await_step(steady_clock::now());
        }
        if (way == outcome::too_late) {
            const bool requeued = co_await next_rung();
            if (!requeued) co_return;
            way = co_await await_step(steady_clock::now());
            if (way == outcome::too_late) conclude(still_none, false);
        }
        if (way == outcome::reached) {
            none_stuck();
            co_await await_training();
        }
    }

    task<outcome> await_step(steady_clock::time_point since);
    milliseconds already(std::int64_t since_ms, std::int64_t started_s) const;
    task<look_back> find_holders();
    /// The job runs again since it lost the node: none of what it has is of the run before.
    bool anew(const job_status& now) const { return now.restarts > before_.restarts; }
    task<bool> next_rung();
    task<void> await_training();
    task<std::optional<std::int64_t>> newest(std::vector<std::string> nodes);
    task<result<job_status>> look();
    void none_stuck();
    /// By another incident of the job, which is the newer one.
    bool taken_over() {
        const bool is = !tools_.others->follows(before_.id, number_);
        if (is) conclude("is followed for a newer failure of it now", true);
        return is;
    }
    void conclude(std::string text, bool done) {
        tools_.known.record(number_, "verify", target_, std::move(text), done);
    }
    std::string phases(std::int64_t trained_ms) const;

    const verification_tools& tools_;
    asio::steady_timer timer_;
    const std::uint64_t number_;
    const std::string node_;
    const job_status before_;
    const std::string target_;
    const std::int64_t since_ms_;  // the job is followed
    std::optional<std::int64_t> before_training_;
    step_status step_;
    std::int64_t step_ms_ = 0;
    milliseconds pause_ = tools_.limits.pause;
    holders doubt_;                          // the last that was said
    bool queued_ = false;                    // and was followed from there
    steady_clock::time_point ending_since_;  // the step that had the node
};

task<result<job_status>> verification::look() {
    timer_.expires_after(pause_);
    co_await timer_.async_wait(as_result);
    auto out = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.job(before_.id); });
    co_return out;
}

task<std::optional<std::int64_t>> verification::newest(std::vector<std::string> nodes) {
    std::erase(nodes, node_);
    nodes.resize(std::min(nodes.size(), daemons_asked));
    auto out = co_await tools_.progress(before_.id, std::move(nodes));
    co_return out;
}

/// A step without the lost node, or any of a later run. Time in which the job waits in the queue, or
/// slurmctld does not answer, does not count.
task<verification::outcome> verification::await_step(steady_clock::time_point since) {
    while (steady_clock::now() - since < tools_.limits.step) {
        const auto now = co_await look();
        if (taken_over()) co_return outcome::over;
        if (!now && now.error().code == errc::not_found) co_return outcome::over;
        if (now && now->phase == job_phase::ended) co_return outcome::over;
        if (now && now->phase != job_phase::running && !queued_) {
            // By banyan-run or its user. Its last run may have to be ended first, and it is to start soon.
            queued_ = true;
            auto before = before_;
            co_await follow_job(tools_, number_, std::move(before), ending_since_);
        }
        if (!now || now->phase != job_phase::running) {
            since = steady_clock::now();
            continue;
        }
        queued_ = false;
        auto steps = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.steps(before_.id); });
        if (!steps) continue;
        // One that runs again may have the node, too: it was seen to, and is back.
        const auto found = std::ranges::find_if(*steps, [&](const auto& s) {
            return anew(*now) || std::ranges::find(s.nodes, node_) == s.nodes.end();
        });
        if (found == steps->end()) continue;
        step_ = std::move(*found);
        step_ms_ = wall_ms();
        co_return outcome::reached;
    }
    co_return outcome::too_late;
}

/// How long the job has had no new step: where it runs, not from before it started. Enough is left to see one
/// that begins just now.
milliseconds verification::already(std::int64_t since_ms, std::int64_t started_s) const {
    const milliseconds gone(wall_ms() - std::max(since_ms, started_s * 1000));
    return std::clamp(gone, milliseconds(0), tools_.limits.step * 3 / 4);
}

/// Nodes that do not end the step which had the lost node.
task<verification::look_back> verification::find_holders() {
    const auto now = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.job(before_.id); });
    if (now && anew(*now)) co_return look_back::nobody;  // its last run has ended everywhere
    result<std::optional<last_run>> seen =
        now ? result<std::optional<last_run>>() : std::unexpected(now.error());
    if (now)
        seen = co_await run_blocking(tools_.pool,
                                     [this, &now] { return look_at_last_run(tools_.slurm, *now, node_); });
    if (!tools_.others->follows(before_.id, number_)) co_return look_back::not_known;
    if (seen && !*seen) co_return look_back::not_known;  // it goes on meanwhile, or waits in the queue
    holders found;
    if (seen)
        found = judge_last_run(**seen);
    else
        found.why_not = seen.error().text();
    if (found.where.empty() && found.why_not.empty()) co_return look_back::nobody;
    if (found.taken_out && !(*seen)->silent.empty())
        if (const auto other = tools_.others->silence_shared(before_.id, steady_clock::now())) {
            found.taken_out = false;
            found.why_not = fmt::format(
                "Nodes of job {} said nothing a short while ago, either: the network or the controller may "
                "be "
                "the cause, and none is taken out",
                *other);
        }
    const bool known = seen && (*seen)->unknown.empty();
    // What is looked at again and again is said once.
    if (known || found != doubt_) tools_.held_up(number_, before_, found);
    if (!known) doubt_ = found;
    co_return found.taken_out ? look_back::taken_out : known ? look_back::left_alone : look_back::not_known;
}

/// Once for each failure: by whomever.
task<bool> verification::next_rung() {
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
    const auto done = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.requeue(before_.id); });
    if (!done) {
        tools_.known.record(number_, "requeue", target_, "not done: " + done.error().text(), false);
        co_return false;
    }
    auto before = before_;
    co_await follow_job(tools_, number_, std::move(before), ending_since_);
    co_return true;
}

std::string verification::phases(std::int64_t trained_ms) const {
    const auto* i = tools_.known.incidents().find(number_);
    if (!i) return {};
    std::string out =
        fmt::format("{:.2f} s after the line (incident {:.2f}", in_seconds(trained_ms - i->line_ms),
                    in_seconds(i->incident_ms - i->line_ms));
    if (i->sealed_ms) out += fmt::format(", sealed {:.2f}", in_seconds(i->sealed_ms - i->line_ms));
    if (i->node_out_ms) out += fmt::format(", node out {:.2f}", in_seconds(i->node_out_ms - i->line_ms));
    return out + fmt::format(", new step {:.2f})", in_seconds(step_ms_ - i->line_ms));
}

/// What was said of nodes that hold up the job, and not acted on, is no longer so.
void verification::none_stuck() {
    for (const auto& [number, i] : tools_.known.incidents().all()) {
        const bool of_job = std::ranges::find(i.jobs, before_.id) != i.jobs.end();
        if (i.reason != stuck_reason || i.closed_ms != 0 || i.node_out_ms != 0 || !of_job) continue;
        auto* found = tools_.known.incidents().find(number);
        found->closed_ms = wall_ms();
        found->closed_by = fmt::format("the node: job {} has a new step", before_.id);
        tools_.known.save_soon(number);
    }
}

task<void> verification::await_training() {
    const auto begun = steady_clock::now();
    const auto name = fmt::format("step {}.{} runs on {} nodes", before_.id, step_.id, step_.nodes.size());
    bool told = before_training_.has_value();
    while (steady_clock::now() - begun < tools_.limits.training) {
        if (taken_over()) co_return;
        const auto now = co_await newest(step_.nodes);
        told = told || now.has_value();
        // Who did not tell before tells where it begins.
        if (now && !before_training_) before_training_ = now;
        if (now && *now > *before_training_) {
            conclude(fmt::format("{}; trains again: step {} complete {}", name, *now, phases(wall_ms())),
                     true);
            co_return;
        }
        if (!told) break;
        if (steady_clock::now() - begun > soon) pause_ = std::max(pause_, rare_pause);
        const auto job = co_await look();
        if (job ? job->phase == job_phase::ended : job.error().code == errc::not_found) co_return;
    }
    if (told)
        conclude(fmt::format("{}, and no newer training step is complete after {} s: look at the job", name,
                             tools_.limits.training.count() / 1000),
                 false);
    else
        conclude(name + "; whether it trains is not known: no checkpoint daemon told", true);
}

void no_longer(incident& i, std::uint32_t job) {
    std::erase_if(i.followed, [job](const followed_job& f) { return f.job == job; });
}

}  // namespace

bool verifications::begin(std::uint32_t job, std::uint64_t number, bool stuck) {
    if (stuck && followed_.contains(job)) return false;
    followed_[job] = number;
    return true;
}

bool verifications::follows(std::uint32_t job, std::uint64_t number) const {
    const auto found = followed_.find(job);
    return found != followed_.end() && found->second == number;
}

void verifications::end(std::uint32_t job, std::uint64_t number) {
    if (follows(job, number)) followed_.erase(job);
}

std::optional<std::uint32_t> verifications::silence_shared(std::uint32_t job, steady_clock::time_point now) {
    const auto other = silent_job_;
    const bool shared = other != 0 && other != job && now - silent_at_ < silence_is_shared_for;
    silent_job_ = job;
    silent_at_ = now;
    return shared ? std::optional(other) : std::nullopt;
}

task<void> verify_job(const verification_tools& tools, std::uint64_t number, job_status before) {
    auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return;
    const auto id = before.id;
    if (!tools.others->begin(id, number, incident->reason == stuck_reason)) co_return;
    no_longer(*incident, id);
    const auto since_ms = wall_ms();
    incident->followed.push_back(
        {id, before.restarts, before.may_requeue, since_ms, before.batch_host, before.nodes});
    tools.known.save_soon(number);
    verification it(tools, number, incident->object.node, std::move(before), since_ms);
    co_await it.run();
    tools.others->end(id, number);
    if ((incident = tools.known.incidents().find(number))) no_longer(*incident, id);
    co_await tools.known.save(number);
}

task<void> verify_again(const verification_tools& tools, std::uint64_t number, followed_job kept) {
    auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return;
    if (!tools.others->begin(kept.job, number, incident->reason == stuck_reason)) {
        no_longer(*incident, kept.job);
        co_return co_await tools.known.save(number);
    }
    job_status before;
    before.id = kept.job;
    before.nodes = std::move(kept.nodes);
    before.batch_host = std::move(kept.script);
    before.may_requeue = kept.may_requeue;
    before.restarts = kept.restarts;
    verification it(tools, number, incident->object.node, std::move(before), kept.since_ms);
    co_await it.go_on();
    tools.others->end(kept.job, number);
    if ((incident = tools.known.incidents().find(number))) no_longer(*incident, kept.job);
    co_await tools.known.save(number);
}

}  // namespace banyan::fault
