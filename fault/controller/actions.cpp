// SPDX-License-Identifier: BSD-3-Clause
//
// What is done about an incident, in order: seal, node out, then each job that had the node. Every step is
// claimed in the history first, so that a restart repeats none.
#include <algorithm>

#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "fault/controller/controller.hpp"

namespace banyan::fault {
namespace {

// "Xid 79 GPU 3 fell off the bus" -> "banyan: gpu: Xid 79 GPU 3 fell off the bus [f00012]"
std::string slurm_reason(const incident& i) {
    return fmt::format("{} {}: {} [{}]", our_reason_prefix, name_of(i.object.kind), i.cause.substr(0, 160),
                       i.id());
}

}  // namespace

void controller::record(std::uint64_t number, std::string what, std::string target, std::string text,
                        bool done) {
    auto* i = engine_.find(number);
    if (!i) return;
    metrics_->count_action(what, done);
    spdlog::warn("incident {}: {} {}: {}", i->id(), what, target, text);
    i->actions.push_back({std::move(what), std::move(target), wall_ms(), std::move(text)});
    save_soon(number);
}

task<bool> controller::claim(std::uint64_t number, std::string what, std::string target) {
    const auto claimed = co_await on_database(
        [this, number, &what, &target] { return history_->claim(number, what, target, wall_ms()); });
    if (claimed) co_return *claimed;
    complain(claimed.error());
    const auto* i = engine_.find(number);
    co_return i && !i->find_action(what, target);  // without a history, memory must do
}

task<void> controller::act(std::uint64_t number) {
    if (!acting_.insert(number).second) {
        again_.insert(number);  // it became worse while we act: look again afterwards
        co_return;
    }
    do {
        again_.erase(number);
        co_await act_once(number);
    } while (again_.contains(number));
    acting_.erase(number);
    if (auto* i = engine_.find(number)) i->state = incident_state::done;
    co_await save(number);
}

task<void> controller::act_once(std::uint64_t number) {
    auto* i = engine_.find(number);
    if (!i) co_return;
    i->state = incident_state::acting;
    if (nodes_ == 0 && rule_for(*i).step >= step_kind::drain) {
        const auto count = co_await run_blocking(pool_, [this] { return slurm_->node_count(); });
        if (count) nodes_ = *count;
    }
    const auto boot = hub_.boot_of(i->object.node);
    const bool current = boot.empty() || boot == i->boot_id;
    const auto what = limiter_.decide(*i, current, nodes_, wall_ms());
    i->advice = advice_of(what, i->object.node, config_.dry_run);
    engine_.touch();
    if (what.step < step_kind::seal) co_return;
    const auto node = i->object.node;
    auto jobs = co_await run_blocking(pool_, [this, &node] { return slurm_->jobs_on(node); });
    if (!jobs) complain(jobs.error());
    auto affected = jobs ? std::move(*jobs) : std::vector<job_status>{};
    if ((i = engine_.find(number)) && i->jobs.empty())
        for (const auto& job : affected) i->jobs.push_back(job.id);
    co_await seal_jobs(number, affected);
    if (what.step < step_kind::drain) co_return;
    const bool out = co_await take_node_out(number, what);
    // After a restart the node may be out already, while its jobs still wait for us.
    if ((i = engine_.find(number)) && affected.empty() && out)
        for (const auto id : i->jobs)
            if (auto job = co_await run_blocking(
                    pool_, [this, id] { return slurm_->job(static_cast<std::uint32_t>(id)); }))
                affected.push_back(std::move(*job));
    if (!out || what.step != step_kind::node_out) co_return;
    auto left = std::make_shared<std::size_t>(affected.size());
    auto all_done = std::make_shared<asio::steady_timer>(io_, asio::steady_timer::time_point::max());
    for (auto& job : affected)
        asio::co_spawn(io_, follow_job(number, std::move(job)), [left, all_done](std::exception_ptr) {
            if (--*left == 0) all_done->cancel();
        });
    if (*left > 0) co_await all_done->async_wait(as_result);
}

task<void> controller::seal_jobs(std::uint64_t number, std::vector<job_status> jobs) {
    auto* i = engine_.find(number);
    const auto node = i->object.node;
    if (jobs.empty() || i->sealed_ms != 0 || !co_await claim(number, "seal", node)) co_return;
    std::vector<std::string> nodes;
    for (const auto& job : jobs) nodes.insert(nodes.end(), job.nodes.begin(), job.nodes.end());
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    const auto one_job = jobs.size() == 1 ? jobs.front().id : 0;
    const auto report = co_await hub_.seal(std::move(nodes), one_job, config_.seal_timeout);
    if ((i = engine_.find(number))) i->sealed_ms = wall_ms();
    record(number, "seal", node, report.text(), report.answered > 0);
}

task<bool> controller::take_node_out(std::uint64_t number, decision what) {
    auto* i = engine_.find(number);
    const bool down = what.step == step_kind::node_out;
    const std::string verb = down ? "node_down" : "node_drain";
    const auto node = i->object.node, reason = slurm_reason(*i);
    auto status = co_await run_blocking(pool_, [this, &node] { return slurm_->node(node); });
    if (!co_await claim(number, verb, node)) {
        // Begun by an earlier controller, which may have died in the middle: the reason tells whether it was
        // done.
        const bool done = status && status->reason.find(fmt::format("[{}]", i->id())) != std::string::npos;
        if (done && i->node_out_ms == 0) i->node_out_ms = wall_ms();
        co_return done;
    }
    if (!what.allowed) {
        record(number, verb, node, "held back: " + what.why, false);
        co_return false;
    }
    if (config_.dry_run) {
        limiter_.count(wall_ms());
        record(number, verb, node,
               fmt::format("dry run: would set {} {} with \"{}\"", node, down ? "DOWN" : "DRAIN", reason),
               false);
        co_return false;
    }
    if (!status) {
        record(number, verb, node, "not done: " + status.error().text(), false);
        co_return false;
    }
    const bool ours = status->reason.starts_with(our_reason_prefix);
    if (!status->reason.empty() && !ours) {
        record(number, verb, node, fmt::format("left alone: the node has the reason \"{}\"", status->reason),
               false);
        co_return false;
    }
    if (ours ? (status->down || (!down && status->drained)) : (status->down || status->drained)) {
        record(number, verb, node,
               fmt::format("nothing to do: the node is out already (\"{}\")", status->reason), false);
        co_return false;
    }
    auto set = co_await run_blocking(pool_, [this, &node, &reason, down] {
        return down ? slurm_->set_down(node, reason) : slurm_->set_drain(node, reason);
    });
    if (!set) {
        record(number, verb, node, "not done: " + set.error().text(), false);
        co_return false;
    }
    limiter_.count(wall_ms());
    if ((i = engine_.find(number))) i->node_out_ms = wall_ms();
    record(number, verb, node, fmt::format("done: \"{}\"", reason), true);
    co_return true;
}

}  // namespace banyan::fault
