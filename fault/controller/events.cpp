// SPDX-License-Identifier: BSD-3-Clause
//
// From events to incidents.
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "fault/controller/controller.hpp"
#include "fault/incident/job_rules.hpp"

namespace banyan::fault {

namespace {
constexpr std::size_t max_seen = 16'384;

/// It is to be acted on, and the history says so before that begins: a controller that ends in between would
/// take it for done.
void begin(incident& i) {
    if (i.state == incident_state::done) i.state = incident_state::open;
}
}  // namespace

bool seen_events::first(const event& e) {
    auto [it, fresh] = keys_.insert(e.key());
    if (!fresh) return false;
    order_.push_back(*it);
    if (order_.size() > max_seen) {
        keys_.erase(order_.front());
        order_.pop_front();
    }
    return true;
}

task<bool> controller::take_events(std::string /*node*/, std::vector<event> events) {
    // Twice the same: on a second connection while the first still works on it, or from before a restart.
    std::erase_if(events, [this](const event& e) { return !seen_.first(e); });
    if (events.empty()) co_return true;
    const auto known = co_await records_.known(events);
    std::vector<kept_event> fresh;
    std::set<std::uint64_t> changed, judge;
    for (std::size_t n = 0; n < events.size(); ++n) {
        if (known[n]) continue;
        const auto out = records_.incidents().absorb(events[n], wall_ms());
        // The incident counts it, and the history has what made a difference.
        const bool kept = out.created || out.escalated || !is_told_of_a_job(events[n].fault) ||
                          job_rows_.may_have_one(events[n].job, wall_ms());
        if (kept) changed.insert(out.number);
        if (auto* i = records_.incidents().find(out.number); i && !out.past) {
            const auto what = out.escalated ? out.created ? change::first : change::worse
                              : out.created ? change::echo
                                            : change::again;
            const auto came_of_it = hearing_.hear(*i, what);
            if (came_of_it == heard::act) {
                begin(*i);
                judge.insert(out.number);
            } else if (out.created) {
                i->state = incident_state::done;
            }
        }
        if (kept) fresh.push_back({std::move(events[n]), out.number});
    }
    // The actions begin at once.
    for (const auto number : judge) asio::co_spawn(io_, act(number), asio::detached);
    if (fresh.empty()) co_return true;
    co_await records_.keep(std::move(fresh), std::move(changed));
    co_return true;
}

void controller::hear(std::uint64_t number, change what) {
    auto* i = records_.incidents().find(number);
    if (!i) return;
    const auto came_of_it = hearing_.hear(*i, what);
    if (came_of_it == heard::act) begin(*i);
    records_.save_soon(number);
    if (came_of_it == heard::act) asio::co_spawn(io_, act(number), asio::detached);
}

void controller::after_self_seal(const std::string& node, std::int64_t at_ms, const std::string& text) {
    // It belongs to the newest incident of the node.
    for (auto it = records_.incidents().all().rbegin(); it != records_.incidents().all().rend(); ++it) {
        if (it->second.object.node != node || it->second.closed_ms != 0) continue;
        auto* i = records_.incidents().find(it->first);
        i->actions.push_back({"agent_seal", node, at_ms, text});
        records_.save_soon(it->first);
        return;
    }
}

}  // namespace banyan::fault
