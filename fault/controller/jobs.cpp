// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of a job whose node was taken out: left to banyan-run while enough nodes remain, else
// requeued, and a requeued one starts now rather than after Slurm's two minutes.
#include <algorithm>
#include <ctime>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "fault/controller/controller.hpp"

namespace banyan::fault {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds first_pause(20), longest_pause(250);
constexpr std::chrono::seconds timeout(150);   // a job's processes may take KillWait and an epilog to end
constexpr std::chrono::seconds still_has(15);  // Slurm takes the node away within milliseconds
constexpr int most_start_tries = 40;

// A node refuses a job whose new credential is not of a later second than the end of its earlier run; clocks
// may differ by less than a second. That is why Slurm itself waits two minutes.
constexpr std::int64_t credential_gap_s = 2;

}  // namespace

task<void> controller::follow_job(std::uint64_t number, job_status before) {
    const auto* found = engine_.find(number);
    if (!found) co_return;
    const auto node = found->object.node, target = std::to_string(before.id);
    const auto begun = steady_clock::now();
    auto pause = first_pause;
    int start_tries = 0;
    std::time_t pending_since = 0;
    bool requeued = false, started = false;
    std::string untold;  // why it is not known how many nodes the job needs
    asio::steady_timer timer(io_);
    while (steady_clock::now() - begun < timeout) {
        untold.clear();
        const auto now = co_await run_blocking(pool_, [this, id = before.id] { return slurm_->job(id); });
        if (!now && now.error().code == errc::not_found) {
            record(number, "job", target, "is gone from Slurm", true);
            co_return;
        }
        if (now && now->phase == job_phase::ended) {
            record(number, "job", target, before.may_requeue ? "ended" : "ended: it may not be requeued",
                   true);
            co_return;
        }
        if (now && now->phase == job_phase::running) {
            if (now->restarts > before.restarts || (requeued && started)) {
                record(number, "job", target, fmt::format("runs again on {} nodes", now->nodes.size()), true);
                co_return;
            }
            const bool has = std::ranges::find(now->nodes, node) != now->nodes.end();
            if (has && steady_clock::now() - begun > still_has) {
                record(number, "job", target, "still holds the node: left alone", false);
                co_return;
            }
            if (!has && !requeued) {
                const auto needed =
                    co_await run_blocking(pool_, [this, &now] { return slurm_->nodes_needed(*now); });
                untold = needed ? "" : needed.error().text();
                if (!needed) {
                    if (needed.error().code != errc::unavailable) break;
                } else if (!*needed || now->nodes.size() >= **needed) {
                    record(
                        number, "job", target,
                        fmt::format("goes on: {} nodes left{}; banyan-run puts a spare in place",
                                    now->nodes.size(), *needed ? fmt::format(", {} needed", **needed) : ""),
                        true);
                    co_return;
                } else if (!now->may_requeue) {
                    record(number, "job", target,
                           fmt::format("{} nodes left, {} needed, and it may not be requeued",
                                       now->nodes.size(), **needed),
                           false);
                    co_return;
                } else {
                    if (!co_await claim(number, "requeue", target)) co_return;
                    const auto done =
                        co_await run_blocking(pool_, [this, id = before.id] { return slurm_->requeue(id); });
                    record(number, "requeue", target,
                           done ? fmt::format("{} nodes left, {} needed", now->nodes.size(), **needed)
                                : done.error().text(),
                           done.has_value());
                    if (!done) co_return;
                    requeued = true;
                    pause = first_pause;
                }
            }
        }
        if (now && now->phase == job_phase::pending) {
            if (!requeued)
                record(number, "job", target, "is back in the queue: banyan-run or Slurm put it there", true);
            requeued = true;
            if (pending_since == 0) pending_since = std::time(nullptr);
        }
        if (now && now->phase == job_phase::pending &&
            std::time(nullptr) >= pending_since + credential_gap_s &&
            now->start_time > std::time(nullptr) + 1 && start_tries < most_start_tries) {
            ++start_tries;
            const auto done =
                co_await run_blocking(pool_, [this, id = before.id] { return slurm_->start_now(id); });
            if (done && !started) record(number, "start_now", target, "StartTime=now", true);
            if (done) started = true;
            if (!done && start_tries == most_start_tries)
                record(number, "start_now", target, done.error().text(), false);
            pause = first_pause;
        }
        timer.expires_after(pause);
        co_await timer.async_wait(as_result);
        pause = std::min(pause * 3 / 2, longest_pause);
    }
    if (!untold.empty())
        record(number, "job", target, untold + ": left alone", false);
    else
        record(number, "job", target, started ? "waits for free nodes" : "did not settle in time: left alone",
               started);
}

}  // namespace banyan::fault
