// SPDX-License-Identifier: BSD-3-Clause
//
// From events to incidents.
#include <algorithm>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "common/timer.hpp"
#include "fault/controller/controller.hpp"
#include "fault/incident/job_rules.hpp"

namespace banyan::fault {

namespace {
// An agent that is not answered for so long comes again, with the same.
constexpr std::chrono::seconds agent_waits(5);
constexpr std::chrono::milliseconds look_again(100);

/// It is to be acted on, and the history says so before that begins: a controller that ends in between would
/// take it for done.
void begin(incident& i) {
    if (i.state == incident_state::done) i.state = incident_state::open;
}

/// The line may be what it rests on now.
void note_written(incident& i, const event& e) {
    const bool counts = e.line_ms == i.line_ms || (!i.seen.empty() && e.line_ms == i.seen.back());
    if (counts) i.written_ms = e.written_ms ? std::max(i.written_ms, *e.written_ms) : 0;
}

/// What is to be in the history before an agent may forget it.
struct taken_events {
    std::vector<kept_event> fresh;
    std::set<std::uint64_t> changed;
    std::vector<std::string> others;  // keys of those that somebody else brings there
    std::function<void()> kept;
};

task<void> keep_all(asio::io_context& io, records& known, seen_events& seen, taken_events what) {
    if (!what.fresh.empty()) {
        std::vector<std::pair<std::string, std::string>> names;
        for (const auto& [e, number] : what.fresh) names.emplace_back(e.node, e.key());
        co_await known.keep(std::move(what.fresh), std::move(what.changed));
        for (const auto& [node, key] : names) seen.keep(node, key, clock::wall_ms());
    }
    banyan::timer timer(io);
    const auto until = clock::now() + agent_waits;
    while (std::ranges::any_of(what.others, [&](const auto& key) { return seen.waits(key); })) {
        if (clock::now() >= until) co_return;
        timer.expires_after(look_again);
        co_await timer.async_wait(as_result);
    }
    if (what.kept && std::ranges::all_of(what.others, [&](const auto& key) { return seen.is_kept(key); }))
        what.kept();
}

}  // namespace

task<void> controller::take_events(std::string /*node*/, std::vector<event> events,
                                   std::function<void()> kept) {
    // Twice the same: on a second connection while the first still works on it, or from before a restart.
    taken_events out;
    out.kept = std::move(kept);
    std::erase_if(events, [&](const event& e) {
        const auto sight = seen_.look(e);
        if (sight == seen_events::sight::waiting) out.others.push_back(e.key());
        if (sight == seen_events::sight::refused) out.kept = {};
        return sight != seen_events::sight::fresh;
    });
    std::optional<std::vector<bool>> known;
    if (!events.empty()) known = co_await records_.known(events);
    std::set<std::uint64_t> judge;
    for (std::size_t n = 0; n < events.size(); ++n) {
        if (known && (*known)[n]) {
            seen_.keep(events[n].node, events[n].key(), clock::wall_ms());
            continue;
        }
        // Without an answer what is new is new all the same. What an earlier controller may have acted on
        // stays with its agent, which sends it again.
        if (!known && !seen_.covers(events[n], clock::wall_ms())) {
            seen_.forget(events[n]);
            out.kept = {};
            continue;
        }
        auto& e = events[n];
        const auto came = records_.incidents().absorb(e, clock::wall_ms());
        records_.after_folding(came.folded, limiter_);
        for (const auto number : came.folded) judge.erase(number);
        // The incident counts it, and the history has what made a difference.
        const bool keeps = came.created || came.escalated || !is_told_of_a_job(e.fault) ||
                           job_rows_.may_have_one(e.job, clock::wall_ms());
        if (auto* i = records_.incidents().find(came.number); i && !came.past) {
            note_written(*i, e);
            const auto what = came.escalated ? came.created ? change::first : change::worse
                              : came.created ? change::echo
                                             : change::again;
            const auto came_of_it = hearing_.hear(*i, what);
            if (came_of_it == heard::act) {
                begin(*i);
                judge.insert(came.number);
            } else if (came.created) {
                i->state = incident_state::done;
            }
        }
        if (!keeps) {
            seen_.keep(e.node, e.key(), clock::wall_ms());
            continue;
        }
        out.changed.insert(came.number);
        out.fresh.push_back({std::move(e), came.number});
    }
    // The actions begin at once.
    for (const auto number : judge) asio::co_spawn(io_, act(number), asio::detached);
    asio::co_spawn(io_, keep_all(io_, records_, seen_, std::move(out)), asio::detached);
}

void controller::hear(std::uint64_t number, change what) {
    auto* i = records_.incidents().find(number);
    if (!i) return;
    const auto came_of_it = hearing_.hear(*i, what);
    if (came_of_it == heard::act) begin(*i);
    records_.save_soon(number);
    if (came_of_it == heard::act) asio::co_spawn(io_, act(number), asio::detached);
}

}  // namespace banyan::fault
