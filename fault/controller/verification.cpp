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

constexpr const char* still_none = "has no new step after it was requeued: look at the job";

/// By an earlier controller, as the next rung.
bool was_requeued(const incident& i, const std::string& target) {
    return std::ranges::any_of(i.actions, [&](const auto& a) {
        return a.what == "requeue" && a.target == target && a.result.starts_with("no new step");
    });
}

double in_seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

class verification {
  public:
    verification(const verification_tools& tools, std::uint64_t number, std::string node, job_status before)
        : tools_(tools),
          timer_(tools.io),
          number_(number),
          node_(std::move(node)),
          before_(std::move(before)),
          target_(std::to_string(before_.id)) {}

    task<void> run() {
        before_training_ = co_await newest(before_.nodes);
        ending_since_ = steady_clock::now();
        co_await verify();
    }

    /// What an earlier controller had begun at `since_ms`.
    task<void> go_on(std::int64_t since_ms) {
        auto now = co_await look();
        while (!now && now.error().code != errc::not_found) now = co_await look();
        ending_since_ = steady_clock::now();
        if (now) ending_since_ -= already(since_ms, now->phase == job_phase::running ? now->start_time : 0);
        co_await verify();
    }

  private:
    enum class outcome : std::uint8_t { reached, too_late, over };

    task<void> verify() {
        auto way = co_await await_step(ending_since_);
        if (way == outcome::too_late) {
            const bool waits = co_await find_holders();
            if (waits) way = co_await await_step(steady_clock::now());
        }
        if (way == outcome::too_late) {
            const bool requeued = co_await next_rung();
            if (!requeued) co_return;
            way = co_await await_step(steady_clock::now());
            if (way == outcome::too_late) conclude(still_none, false);
        }
        if (way == outcome::reached) co_await await_training();
    }

    task<outcome> await_step(steady_clock::time_point since);
    milliseconds already(std::int64_t since_ms, std::int64_t started_s) const;
    task<bool> find_holders();
    task<bool> next_rung();
    task<void> await_training();
    task<std::optional<std::int64_t>> newest(std::vector<std::string> nodes);
    task<result<job_status>> look();
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
    std::optional<std::int64_t> before_training_;
    step_status step_;
    std::int64_t step_ms_ = 0;
    milliseconds pause_ = tools_.limits.pause;
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

/// A step without the lost node. Time in which the job waits in the queue, or slurmctld does not answer, does
/// not count.
task<verification::outcome> verification::await_step(steady_clock::time_point since) {
    while (steady_clock::now() - since < tools_.limits.step) {
        const auto now = co_await look();
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
        const auto found = std::ranges::find_if(
            *steps, [this](const auto& s) { return std::ranges::find(s.nodes, node_) == s.nodes.end(); });
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

/// Nodes that do not end the step which had the lost node. True: they are to go out, and a step may begin
/// then.
task<bool> verification::find_holders() {
    auto where =
        co_await run_blocking(tools_.pool, [this] { return tools_.slurm.unended(before_.id, node_); });
    if (!where) tools_.known.complain(where.error());
    if (!where || where->empty()) co_return false;
    const auto count = where->size();
    const holders found{std::move(*where), !too_many(count, before_.nodes.size())};
    tools_.held_up(number_, before_, found);
    co_return found.taken_out;
}

task<bool> verification::next_rung() {
    const auto within = tools_.limits.step.count() / 1000;
    const auto* i = tools_.known.incidents().find(number_);
    if (i && was_requeued(*i, target_)) {
        conclude(still_none, false);
        co_return false;
    }
    if (!before_.may_requeue) {
        conclude(fmt::format("has no new step in {} s, and it may not be requeued: look at the job", within),
                 false);
        co_return false;
    }
    const auto done = co_await run_blocking(tools_.pool, [this] { return tools_.slurm.requeue(before_.id); });
    tools_.known.record(number_, "requeue", target_,
                        done ? fmt::format("no new step in {} s", within) : done.error().text(),
                        done.has_value());
    if (!done) co_return false;
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

task<void> verification::await_training() {
    const auto begun = steady_clock::now();
    const auto name = fmt::format("step {}.{} runs on {} nodes", before_.id, step_.id, step_.nodes.size());
    bool told = before_training_.has_value();
    while (steady_clock::now() - begun < tools_.limits.training) {
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

task<void> verify_job(const verification_tools& tools, std::uint64_t number, job_status before) {
    auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return;
    const auto id = before.id;
    no_longer(*incident, id);
    incident->followed.push_back(
        {id, before.restarts, before.may_requeue, wall_ms(), before.batch_host, before.nodes});
    tools.known.save_soon(number);
    verification it(tools, number, incident->object.node, std::move(before));
    co_await it.run();
    if ((incident = tools.known.incidents().find(number))) no_longer(*incident, id);
    co_await tools.known.save(number);
}

task<void> verify_again(const verification_tools& tools, std::uint64_t number, followed_job kept) {
    auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return;
    job_status before;
    before.id = kept.job;
    before.nodes = std::move(kept.nodes);
    before.batch_host = std::move(kept.script);
    before.may_requeue = kept.may_requeue;
    before.restarts = kept.restarts;
    verification it(tools, number, incident->object.node, std::move(before));
    co_await it.go_on(kept.since_ms);
    if ((incident = tools.known.incidents().find(number))) no_longer(*incident, kept.job);
    co_await tools.known.save(number);
}

}  // namespace banyan::fault
