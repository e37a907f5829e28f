// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/limiter.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace banyan::fault {
namespace {

constexpr std::int64_t hour_ms = 3'600'000;

decision held_back(decision asked, bool later, std::string why) {
    asked.allowed = false;
    asked.later = later;
    asked.why = std::move(why);
    return asked;
}

constexpr const char* breaker_is_open = "the circuit breaker is open; banyan-fault reset-breaker closes it";

}  // namespace

std::uint32_t limiter::taken_since(std::int64_t since_ms) const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(taken_, [&](const auto& one) { return one.second > since_ms; }));
}

std::uint32_t limiter::budget() const {
    if (limits_.drains_per_hour == 0) return 0;
    return std::max(limits_.drains_per_hour,
                    static_cast<std::uint32_t>(std::uint64_t{nodes_} * limits_.drains_percent / 100));
}

std::uint32_t limiter::breaker_at() const {
    // Small clusters must be able to lose a few nodes; so many at once in a large one is rarely hardware.
    // What an hour may bring is too much for a few minutes, in a cluster of any size.
    const auto share = static_cast<std::uint32_t>(std::uint64_t{nodes_} * limits_.breaker_percent / 100);
    return std::max<std::uint32_t>(3, std::min(share, budget()));
}

void limiter::not_taken(const incident& i, const std::map<std::uint64_t, incident>& all) {
    const auto& node = i.object.node;
    const bool is_out = std::ranges::any_of(all, [&](const auto& one) {
        const auto& other = one.second;
        return other.number != i.number && other.object.node == node && other.closed_ms == 0 &&
               other.node_out_ms != 0;
    });
    if (!is_out) taken_.erase(node);
}

void limiter::not_wanted(const incident& i, const std::map<std::uint64_t, incident>& all) {
    const auto& node = i.object.node;
    not_taken(i, all);
    const auto wants = [](const incident& other) {
        if (other.node_out_ms != 0) return true;
        const bool waits = other.state == incident_state::held || other.state == incident_state::acting;
        if (!waits || other.decided >= action_words().size()) return false;
        const auto asked = static_cast<step_kind>(other.decided);
        return has_limits(asked) && !keeps_the_node(asked);
    };
    const bool is_wanted = std::ranges::any_of(all, [&](const auto& one) {
        const auto& other = one.second;
        return other.number != i.number && other.object.node == node && other.closed_ms == 0 && wants(other);
    });
    if (!is_wanted) wanted_.erase(node);
}

void limiter::returned(const std::string& node) {
    taken_.erase(node);
    wanted_.erase(node);
}

bool limiter::has_room(std::int64_t now_ms) const {
    return !tripped_ && taken_since(now_ms - hour_ms) < budget();
}

bool limiter::has_room_where_nodes_stay(std::int64_t now_ms, std::uint64_t number) const {
    return !tripped_ && (spent_.contains(number) || spent_since(now_ms - hour_ms) < budget());
}

std::size_t limiter::spent_since(std::int64_t since_ms) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(spent_, [&](const auto& one) { return one.second > since_ms; }));
}

decision limiter::narrow_what_stays(decision asked, const incident& i, std::int64_t now_ms) {
    if (tripped_) return held_back(std::move(asked), true, breaker_is_open);
    if (spent_.contains(i.number)) return asked;  // the rest of what was begun
    if (!has_room_where_nodes_stay(now_ms, i.number))
        return held_back(
            std::move(asked), true,
            fmt::format("for {} incidents jobs were interrupted or nodes swept within the hour, which is "
                        "the limit",
                        spent_since(now_ms - hour_ms)));
    spent_[i.number] = now_ms;
    return asked;
}

void limiter::trip(bool on) {
    tripped_ = on;
    if (!on) wanted_.clear();
}

void limiter::forget_old(std::int64_t now_ms) {
    std::erase_if(taken_, [&](const auto& one) { return one.second < now_ms - hour_ms; });
    std::erase_if(spent_, [&](const auto& one) { return one.second < now_ms - hour_ms; });
    std::erase_if(wanted_, [&](const auto& one) { return one.second <= now_ms - limits_.breaker_window_ms; });
}

decision limiter::narrow(decision out, const incident& i, bool current_boot, std::uint32_t nodes,
                         std::int64_t now_ms) {
    if (!has_limits(out.step)) return out;
    if (nodes > 0) nodes_ = nodes;
    forget_old(now_ms);
    const auto hold = [&](bool later, std::string why) {
        return held_back(std::move(out), later, std::move(why));
    };
    // Of an incident that was held back it counts how old the line was then.
    const auto judged_ms = i.held_ms != 0 ? i.held_ms : now_ms;
    if (!current_boot) return hold(false, "the line is from an earlier boot of the node");
    // Of what a rule counts the newest decides. A node's clock may differ, or be set.
    const auto line_ms = newest_line_ms(i);
    if (judged_ms - line_ms > limits_.max_event_age_ms)
        return hold(false, fmt::format("the line is {} s old", (judged_ms - line_ms) / 1000));
    if (now_ms - judged_ms > most_held_ms)
        return hold(false, fmt::format("it was held back for {} h already", (now_ms - judged_ms) / hour_ms));
    if (keeps_the_node(out.step)) return narrow_what_stays(std::move(out), i, now_ms);
    const auto& node = i.object.node;
    if (taken_.contains(node)) return out;  // one node, several faults
    const bool fresh = i.held_ms == 0;
    if (fresh) wanted_.try_emplace(node, now_ms);
    if (fresh && !tripped_ && nodes > 0 && wanted_.size() > breaker_at()) {
        tripped_ = true;
        return hold(true, fmt::format("{} of {} nodes are to go out at once: the circuit breaker opened",
                                      wanted_.size(), nodes));
    }
    if (tripped_) return hold(true, breaker_is_open);
    if (!has_room(now_ms))
        return hold(true, fmt::format("{} nodes were taken out within the hour, which is the limit",
                                      taken_since(now_ms - hour_ms)));
    taken_[node] = now_ms;
    return out;
}

}  // namespace banyan::fault
