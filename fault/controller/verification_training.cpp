// SPDX-License-Identifier: BSD-3-Clause
//
// The last phase: a newer training step is complete.
#include "common/clock.hpp"
#include "fault/controller/verification_run.hpp"

namespace banyan::fault {

using std::chrono::milliseconds;

namespace {

/// Who is asked how far the training is: each daemon has heard of all ranks, but for those that just came in.
constexpr std::size_t daemons_asked = 4;
/// A training step may take minutes: who waits for longer than `soon` looks less often.
constexpr std::chrono::seconds soon(30);
constexpr milliseconds rare_pause(2'000);

double in_seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

}  // namespace

task<std::optional<std::int64_t>> verification_run::newest(std::vector<std::string> nodes) {
    if (!ended_step_) std::erase(nodes, node_);
    nodes.resize(std::min(nodes.size(), daemons_asked));
    auto out = co_await tools_.progress(before_.id, std::move(nodes));
    co_return out;
}

std::string verification_run::phases(std::int64_t trained_ms) const {
    const auto* i = tools_.known.incidents().find(number_);
    if (!i) return {};
    std::string out =
        fmt::format("{:.2f} s after the line (incident {:.2f}", in_seconds(trained_ms - i->line_ms),
                    in_seconds(i->incident_ms - i->line_ms));
    if (i->sealed_ms) out += fmt::format(", sealed {:.2f}", in_seconds(i->sealed_ms - i->line_ms));
    if (i->node_out_ms) out += fmt::format(", node out {:.2f}", in_seconds(i->node_out_ms - i->line_ms));
    return out + fmt::format(", new step {:.2f})", in_seconds(step_ms_ - i->line_ms));
}

task<void> verification_run::await_training() {
    const auto begun = clock::now();
    const auto name = fmt::format("step {}.{} runs on {} nodes", before_.id, step_.id, step_.nodes.size());
    bool told = before_training_.has_value();
    // It is nothing new, also where those who had heard less were the first to tell.
    const auto known_before = before_training_;
    bool fell_back = false;
    std::optional<std::int64_t> last;
    while (clock::now() - begun < tools_.limits.training) {
        if (taken_over()) co_return;
        const auto now = co_await newest(step_.nodes);
        told = told || now.has_value();
        // Twice the same: of those that answer in time not all have heard the same.
        const bool sure = now && now == std::exchange(last, now);
        // Who did not tell before tells where it begins.
        if (sure && !before_training_) before_training_ = now;
        // The newer ones were lost with their nodes, and this step goes on from an older one: it comes to the
        // one that was known again.
        if (sure && *now >= 0 && now < before_training_) {
            before_training_ = now;
            fell_back = true;
        }
        if (now && before_training_ && now > before_training_ && (fell_back || now != known_before)) {
            conclude(
                fmt::format("{}; trains again: step {} complete {}", name, *now, phases(clock::wall_ms())),
                true);
            co_return;
        }
        if (!told) break;
        if (clock::now() - begun > soon) pause_ = std::max(pause_, rare_pause);
        const auto job = co_await look();
        if (job && job->phase == job_phase::ended) co_return conclude_ended(*job);
        if (!job && job.error().code == errc::not_found) co_return;
    }
    if (told)
        conclude(fmt::format("{}, and no newer training step is complete after {} s: look at the job", name,
                             tools_.limits.training.count() / 1000),
                 false);
    else
        conclude(name + "; whether it trains is not known: no checkpoint daemon told", true);
}

}  // namespace banyan::fault
