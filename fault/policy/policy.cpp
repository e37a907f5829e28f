// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/policy.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "fault/event.hpp"

namespace banyan::fault {
namespace {

constexpr std::int64_t hour_ms = 3'600'000;

decision rule_for_kernel(const incident& i) {
    switch (static_cast<precedence>(i.root_precedence)) {
        case precedence::sympathetic:
        case precedence::note:
            return {step_kind::none, true, "known and harmless by itself: nothing to do"};
        case precedence::app:
            return {step_kind::none, true, "speaks of the application, not of the hardware: never drained"};
        case precedence::alert:
            return {step_kind::alert, true, "a person should look: banyan takes no node out for this alone"};
        case precedence::reset:
            return {step_kind::drain, true, "the GPU needs a reset: the node takes no new work"};
        case precedence::node_out:
            return {step_kind::node_out, true, "the machine must be restarted: the node is taken out now"};
    }
    return {};
}

}  // namespace

decision rule_for(const incident& i) {
    switch (i.object.kind) {
        case object_kind::link:
            return {step_kind::alert, true, "the fabric routes around it: jobs are left alone"};
        case object_kind::hca:
            return {step_kind::seal, true, "checkpoints of the node's jobs are sealed; the node stays"};
        case object_kind::gpu:
            return rule_for_kernel(i);
        case object_kind::sw:
            return i.reason == "nvswitch"
                       ? rule_for_kernel(i)
                       : decision{step_kind::alert, true, "the fabric routes around it where it can"};
        case object_kind::node:
            return {step_kind::seal, true,
                    "checkpoints of the node's jobs are sealed; Slurm judges the node"};
    }
    return {};
}

std::string advice_of(const decision& d, const std::string& node, bool dry_run) {
    if (!dry_run || !d.allowed || d.step < step_kind::drain) return d.why;
    const bool down = d.step == step_kind::node_out;
    return fmt::format(
        "{}. Dry run: the node stays in. To take it out: scontrol update NodeName={} State={} Reason=...",
        down ? "the machine must be restarted" : "the GPU needs a reset", node, down ? "DOWN" : "DRAIN");
}

std::uint32_t limiter::taken_since(std::int64_t since_ms) const {
    return static_cast<std::uint32_t>(std::ranges::count_if(taken_, [&](auto at) { return at > since_ms; }));
}

decision limiter::decide(const incident& i, bool current_boot, std::uint32_t nodes, std::int64_t now_ms) {
    auto out = rule_for(i);
    if (out.step != step_kind::drain && out.step != step_kind::node_out) return out;
    while (!taken_.empty() && taken_.front() < now_ms - std::max(hour_ms, limits_.breaker_window_ms))
        taken_.pop_front();
    const auto hold = [&](std::string why) {
        out.allowed = false;
        out.why = std::move(why);
    };
    if (!current_boot) {
        hold("the line is from an earlier boot of the node");
    } else if (now_ms - i.line_ms > limits_.max_event_age_ms) {
        hold(fmt::format("the line is {} s old", (now_ms - i.line_ms) / 1000));
    } else if (tripped_) {
        hold("the circuit breaker is open; banyan-fault reset-breaker closes it");
    } else if (taken_since(now_ms - hour_ms) >= limits_.drains_per_hour) {
        hold(fmt::format("{} nodes were taken out within the hour, which is the limit",
                         limits_.drains_per_hour));
    } else if (nodes > 0) {
        // Small clusters must be able to lose a few nodes; so many at once in a large one is rarely hardware.
        const auto most = std::max<std::uint32_t>(3, nodes * limits_.breaker_percent / 100);
        if (taken_since(now_ms - limits_.breaker_window_ms) >= most) {
            tripped_ = true;
            hold(fmt::format("{} of {} nodes went out at once: the circuit breaker opened", most, nodes));
        }
    }
    return out;
}

}  // namespace banyan::fault
