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
        auto way = co_await await_step();
        if (way == outcome::too_late) {
            const bool requeued = co_await next_rung();
            if (!requeued) co_return;
            way = co_await await_step();
            if (way == outcome::too_late)
                conclude("has no new step after it was requeued: look at the job", false);
        }
        if (way == outcome::reached) co_await await_training();
    }

  private:
    enum class outcome : std::uint8_t { reached, too_late, over };

    task<outcome> await_step();
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
task<verification::outcome> verification::await_step() {
    auto since = steady_clock::now();
    ending_since_ = since;
    while (steady_clock::now() - since < tools_.limits.step) {
        const auto now = co_await look();
        if (!now && now.error().code == errc::not_found) co_return outcome::over;
        if (now && now->phase == job_phase::ended) co_return outcome::over;
        if (!now || now->phase != job_phase::running) {
            since = steady_clock::now();
            continue;
        }
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

task<bool> verification::next_rung() {
    const auto within = tools_.limits.step.count() / 1000;
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

}  // namespace

task<void> verify_job(const verification_tools& tools, std::uint64_t number, job_status before) {
    const auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return;
    verification it(tools, number, incident->object.node, std::move(before));
    co_await it.run();
}

}  // namespace banyan::fault
