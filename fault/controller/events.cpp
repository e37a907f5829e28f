// SPDX-License-Identifier: BSD-3-Clause
//
// From events and fabric reports to incidents.
#include <algorithm>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "fault/controller/controller.hpp"

namespace banyan::fault {

namespace {
constexpr std::size_t max_seen = 16'384;
}

bool controller::first_sight(const event& e) {
    auto [it, fresh] = seen_.insert(e.key());
    if (!fresh) return false;
    seen_order_.push_back(*it);
    if (seen_order_.size() > max_seen) {
        seen_.erase(seen_order_.front());
        seen_order_.pop_front();
    }
    return true;
}

task<bool> controller::take_events(std::string /*node*/, std::vector<event> events) {
    // Twice the same: on a second connection while the first still works on it, or from before a restart.
    std::erase_if(events, [this](const event& e) { return !first_sight(e); });
    if (events.empty()) co_return true;
    auto known = co_await on_database([this, &events]() -> result<std::vector<bool>> {
        std::vector<bool> out;
        for (const auto& e : events) {
            BANYAN_TRY(const bool is, history_->knows(e));
            out.push_back(is);
        }
        return out;
    });
    if (!known) complain(known.error());  // the history is a help, not a condition: act all the same
    std::vector<kept_event> fresh;
    std::set<std::uint64_t> changed, judge;
    for (std::size_t n = 0; n < events.size(); ++n) {
        if (known && (*known)[n]) continue;
        const auto out = engine_.absorb(events[n], wall_ms());
        changed.insert(out.number);
        if (out.escalated) judge.insert(out.number);
        if (auto* i = engine_.find(out.number)) {
            if (out.created) announce(*i);
            if (out.created && !out.escalated)
                i->state = incident_state::done;  // a consequence whose cause is not seen
        }
        fresh.push_back({std::move(events[n]), out.number});
    }
    if (fresh.empty()) co_return true;
    std::vector<incident> copies;
    for (const auto number : changed)
        if (const auto* i = engine_.find(number)) copies.push_back(*i);
    // The actions begin at once; each claims its turn in the history before it does anything.
    for (const auto number : judge) asio::co_spawn(io_, act(number), asio::detached);
    const auto kept = co_await on_database([this, &fresh, &copies] { return history_->keep(fresh, copies); });
    if (!kept) complain(kept.error());
    co_return true;
}

void controller::announce(const incident& i) {
    metrics_->count_incident(
        i.reason, static_cast<double>(std::max<std::int64_t>(0, i.incident_ms - i.line_ms)) / 1000.0);
    metrics_->set_open(static_cast<std::size_t>(
        std::ranges::count_if(engine_.all(), [](const auto& pair) { return pair.second.closed_ms == 0; })));
    spdlog::warn("incident {} {}: {} ({})", i.id(), name_of(i.severity), i.cause, i.object.text());
}

void controller::after_self_seal(const std::string& node, std::int64_t at_ms, const std::string& text) {
    // It belongs to the newest incident of the node.
    for (auto it = engine_.all().rbegin(); it != engine_.all().rend(); ++it) {
        if (it->second.object.node != node || it->second.closed_ms != 0) continue;
        auto* i = engine_.find(it->first);
        i->actions.push_back({"agent_seal", node, at_ms, text});
        save_soon(it->first);
        return;
    }
}

void controller::after_fabric(std::vector<fabric_fault> missing, std::vector<evidence_line> lines,
                              std::int64_t line_ms) {
    const auto now = wall_ms();
    std::set<std::string> still, covered;
    for (const auto& fault : missing) {
        still.insert(fault.key());
        covered.insert(fault.covers.begin(), fault.covers.end());
    }
    std::set<std::string> open;
    std::vector<std::uint64_t> healed;
    for (const auto& [number, i] : engine_.all()) {
        if (i.closed_ms != 0 || i.boot_id != "fabric") continue;
        const auto key = key_of(i.object);
        if (still.contains(key))
            open.insert(key);
        else
            healed.push_back(number);
    }
    for (const auto number : healed) {
        auto* i = engine_.find(number);
        for (const auto& line : lines) i->add_evidence(line);
        i->closed_ms = now;
        const bool larger = covered.contains(key_of(i->object));
        i->closed_by = larger ? "the fabric: part of a larger fault" : "the fabric: it is back";
        i->state = incident_state::done;
        spdlog::warn("incident {} closed by {}: {}", i->id(), i->closed_by, i->object.text());
        save_soon(number);
    }
    for (auto& fault : missing) {
        if (open.contains(fault.key())) continue;
        incident made;
        made.object = fault.object;
        made.reason = fault.reason;
        made.cause = fault.cause;
        made.severity = fault.how_bad;
        made.boot_id = "fabric";
        made.line_ms = line_ms != 0 ? line_ms : now;
        for (const auto& line : lines) made.add_evidence(line);
        const auto& i = engine_.open(std::move(made), now);
        announce(i);
        save_soon(i.number);
        asio::co_spawn(io_, act(i.number), asio::detached);
    }
}

}  // namespace banyan::fault
