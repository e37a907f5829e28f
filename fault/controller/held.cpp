// SPDX-License-Identifier: BSD-3-Clause
//
// What cannot be done now: held back by the limits, or slurmctld did not answer. It is asked for again, and
// an administrator may rule on it.
#include <algorithm>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "common/timer.hpp"
#include "fault/controller/controller.hpp"

namespace banyan::fault {

namespace {

constexpr std::chrono::milliseconds again(500), between_waits(100);

/// By the limits for now, or for good; or by somebody.
bool is_held_back(const incident& i) {
    if (i.state == incident_state::held || !i.cancelled_by.empty()) return true;
    const auto last = std::ranges::find_if(i.actions.rbegin(), i.actions.rend(), [](const auto& a) {
        return a.what == "node_down" || a.what == "node_drain" || a.what == name_of(step_kind::sweep) ||
               a.what == name_of(step_kind::restart) || a.what == name_of(step_kind::requeue);
    });
    return last != i.actions.rend() && last->result.starts_with("held back: ");
}

result<void> can_rule_on(const incident& i, const decision& asked) {
    if (i.closed_ms != 0)
        return fail(errc::conflict, fmt::format("incident {} is closed, by {}", i.id(), i.closed_by));
    if (i.reason == stuck_reason)
        return fail(
            errc::conflict,
            fmt::format("incident {} is of a moment: its node may have ended the job's last run since",
                        i.id()),
            "the node is looked at anew when it holds up a job again");
    if (!has_limits(asked.step))
        return fail(errc::conflict,
                    fmt::format("nothing of incident {} is held back: what is asked for is \"{}\"", i.id(),
                                name_of(asked.step)));
    if (!is_held_back(i))
        return fail(errc::conflict, fmt::format("nothing of incident {} is held back", i.id()),
                    fmt::format("banyan-fault explain {}", i.id()));
    return {};
}

}  // namespace

void controller::put_off(std::uint64_t number, const std::string& what, std::string why, bool by_half) {
    auto* i = records_.incidents().find(number);
    if (!i || i->closed_ms != 0) return;  // what is over needs nothing any more
    // A node that does not end a job's last run may do so at any moment.
    const bool stuck = i->reason == stuck_reason;
    if (!by_half && i->node_out_ms == 0 && (stuck || !node_stays(*i)))
        limiter_.not_taken(*i, incidents().all());
    if (stuck) return give_up(number, what, std::move(why));
    const auto node = i->object.node;
    i->state = incident_state::held;
    const auto text = "held back: " + why;
    const auto said = std::ranges::find(i->actions.rbegin(), i->actions.rend(), what, &action_record::what);
    if (i->held_ms == 0) i->held_ms = clock::wall_ms();
    if (said == i->actions.rend() || said->result != text) records_.record(number, what, node, text, false);
}

void controller::give_up(std::uint64_t number, const std::string& what, std::string why) {
    auto* i = records_.incidents().find(number);
    if (!i) return;
    i->state = incident_state::done;
    if (i->closed_ms == 0) {
        i->closed_ms = clock::wall_ms();
        i->closed_by = "the controller: " + why;
    }
    records_.record(number, what, i->object.node, "not done, nor later: " + why, false);
}

task<result<std::string>> controller::rule_on(std::uint64_t number, ruling what, std::string who) {
    auto* i = records_.incidents().find(number);
    if (!i)
        co_return fail(errc::not_found, fmt::format("there is no open incident f{:05d}", number),
                       "banyan-fault incidents");
    if (acting_.contains(number))
        co_return fail(errc::conflict, fmt::format("incident {} is being acted on", i->id()), "try again");
    const auto asked = rules_.decide(*i, incidents().all());
    if (asked.step == step_kind::avoid || i->avoid_ms != 0)
        co_return co_await avoidance_.rule_on(number, what, std::move(who), limiter_.tripped());
    BANYAN_CO_CHECK(can_rule_on(*i, asked));
    const auto id = i->id(), node = i->object.node, by = "by " + who;
    if (what == ruling::cancel) {
        i->cancelled_by = who;
        i->approved_by.clear();
        i->state = incident_state::done;
        i->held_ms = 0;
        i->advice = "cancelled " + by;
        records_.record(number, "cancel", node, by, true);
        co_await records_.save(number);
        co_return fmt::format("{} for incident {} unless banyan-fault approve {} says so",
                              asked.step == step_kind::sweep ? node + " is not swept"
                              : is_for_jobs(asked.step)      ? "its jobs are not interrupted"
                              : i->kept_from_sweep ? node + " stays drained until banyan-fault resume,"
                                                   : node + " is not taken out",
                              id, id);
    }
    if (what == ruling::retry) {
        if (i->state != incident_state::held)
            co_return fail(errc::conflict,
                           fmt::format("incident {} is not held back for a time, but for good", id),
                           fmt::format("banyan-fault approve {} does it nonetheless", id));
        const auto now = judge(*i);
        records_.record(number, "retry", node, now.allowed ? by : fmt::format("{}: {}", by, now.why),
                        now.allowed);
        if (!now.allowed)
            co_return fail(errc::conflict, fmt::format("incident {} stays held back: {}", id, now.why),
                           fmt::format("banyan-fault approve {} does it nonetheless", id));
    } else {
        i->cancelled_by.clear();
        i->approved_by = who;
        i->decided = static_cast<std::uint8_t>(asked.step);  // that is what is approved
        i->state = incident_state::held;                     // a controller that starts now goes on with it
        records_.record(number, "approve", node, config_.dry_run ? by + ", in dry run" : by, true);
    }
    asio::co_spawn(io_, act(number), asio::detached);
    if (config_.dry_run)
        co_return fmt::format("dry run: {} stays in; incident {} says what would be done", node, id);
    if (is_for_jobs(asked.step))
        co_return fmt::format("its jobs are interrupted now ({}): banyan-fault explain {}",
                              name_of(asked.step), id);
    if (asked.step == step_kind::sweep)
        co_return fmt::format("the agent of {} is asked for a sweep now: banyan-fault explain {}", node, id);
    co_return fmt::format("{} is taken out now ({}): banyan-fault explain {}", node, name_of(asked.step), id);
}

// What broke may have been mended together with that. A controller that starts knows no node's boot before
// its agent has come.
task<bool> controller::was_restarted(std::uint64_t number) {
    const auto* i = records_.incidents().find(number);
    if (!i || i->held_ms == 0 || i->boot_id.empty() || kind_of(*i) == line_kind::fabric ||
        !i->approved_by.empty())
        co_return false;
    const auto node = i->object.node;
    const auto line_ms = newest_line_ms(*i);
    const auto most = config_.sweep_on_its_way.count();
    const auto left = std::clamp<std::int64_t>(started_ms_ + most - clock::wall_ms(), 0, most);
    const auto until = clock::now() + std::chrono::milliseconds(left);
    banyan::timer timer(io_);
    while (!hub_.is_here(node) && clock::now() < until) {
        timer.expires_after(between_waits);
        co_await timer.async_wait(as_result);
    }
    if (hub_.is_here(node)) co_return false;
    const auto status = co_await run_blocking(pool_, [this, &node] { return slurm_->node(node); });
    co_return status && status->boot_time * 1000 > line_ms;
}

task<void> controller::take_up_held() {
    banyan::timer timer(io_);
    for (;;) {
        timer.expires_after(again);
        co_await timer.async_wait(as_result);
        const auto now_ms = clock::wall_ms();
        const bool room = limiter_.has_room(now_ms);
        const auto waits = [](const incident& i) {
            return i.state == incident_state::held && i.closed_ms == 0;
        };
        const auto is_due = [&](std::uint64_t number, const incident& i) {
            if (const auto set = look_again_.find(number); set != look_again_.end())
                return set->second <= clock::now();
            return !i.approved_by.empty() ||
                   (node_stays(i) ? limiter_.has_room_where_nodes_stay(now_ms, number)
                                  : room || limiter_.counts(i.object.node));
        };
        std::erase_if(look_again_, [&](const auto& one) {
            const auto* i = records_.incidents().find(one.first);
            return !i || !waits(*i);
        });
        for (const auto& [number, i] : records_.incidents().all())
            if (waits(i) && !acting_.contains(number) && is_due(number, i))
                asio::co_spawn(io_, act(number), asio::detached);
    }
}

}  // namespace banyan::fault
