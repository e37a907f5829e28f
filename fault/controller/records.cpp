// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/records.hpp"

#include <algorithm>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "common/timer.hpp"
#include "fault/controller/interruption.hpp"
#include "fault/policy/rule.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

namespace {

constexpr std::size_t remembered = 500;  // incidents read back at start
constexpr std::int64_t hour_ms = 3'600'000;
// The history's thread answers questions between its attempts to write.
constexpr std::chrono::milliseconds locked_for(250);
constexpr const char* breaker_flag = "breaker";

}  // namespace

records::records(asio::io_context& io, std::chrono::milliseconds window, std::shared_ptr<metrics> counters)
    : io_(io),
      metrics_(std::move(counters)),
      engine_(window.count()),
      writer_(
          io, [this](std::uint64_t number) { return engine_.find(number); },
          [this](const error& e) { complain(e); }) {}

result<std::vector<std::uint64_t>> records::open(const std::string& path, limiter& limits) {
    std::string warning;
    BANYAN_TRY(auto opened, history::open(path, warning));
    if (!warning.empty()) spdlog::error("{}", warning);
    BANYAN_TRY(auto kept, opened.incidents(remembered, engine::max_kept, engine::max_of_applications));
    BANYAN_TRY(const auto taken, opened.taken_since(clock::wall_ms() - hour_ms));
    BANYAN_TRY(const bool tripped, opened.flag(breaker_flag));
    BANYAN_TRY(cursors_, opened.cursors());
    BANYAN_TRY(agents_, opened.agents());
    BANYAN_TRY(const auto first, opened.first_number());
    engine_.begin_at(first);
    opened.wait_for_locks(locked_for);
    writer_.begin(std::move(opened));
    limits.trip(tripped);
    metrics_->set_breaker(tripped);
    asio::co_spawn(io_, keep_counted(), asio::detached);
    for (const auto& [node, at] : taken) limits.count(node, at);
    std::vector<std::uint64_t> unfinished;
    for (auto& i : kept) {
        for (const auto& a : i.actions)
            if (is_interruption(a) || (a.what == name_of(step_kind::sweep) && !i.swept.empty()))
                limits.count_where_node_stays(i.number, a.at_ms);
        if (i.state != incident_state::done) unfinished.push_back(i.number);
        engine_.restore(std::move(i));
    }
    return unfinished;
}

void records::complain(const error& e) {
    std::uint64_t held = 0;
    if (quiet_.pass(e.what, clock::now(), held)) spdlog::error("{} ({} more held back)", e.text(), held);
}

task<result<std::optional<incident>>> records::find(std::uint64_t number) {
    if (const auto* i = engine_.find(number)) co_return std::optional(*i);
    using answer = result<std::optional<incident>>;
    const std::function<answer(history&)> ask = [number](history& h) { return h.find(number); };
    auto found = co_await writer_.ask(ask);
    if (!found) co_return fail(errc::unavailable, "the history does not answer");
    co_return std::move(*found);
}

void records::say(const incident& i, std::string_view words) const {
    if (!is_ignored(i)) spdlog::warn("incident {}{}", i.id(), words);
}

void records::count_open() {
    if (counted_ == engine_.revision()) return;
    counted_ = engine_.revision();
    std::map<std::string, std::size_t> reasons;
    std::size_t open = 0, held = 0;
    for (const auto& [number, i] : engine_.all()) {
        held += i.state == incident_state::held;
        if (i.closed_ms != 0 || is_ignored(i)) continue;
        ++open;
        if (!is_planned(i)) ++reasons[i.reason];  // nobody is called for what Slurm does
    }
    metrics_->set_open(open);
    metrics_->set_reasons(reasons, held);
}

// Once a second: a storm changes incidents all the time.
task<void> records::keep_counted() {
    banyan::timer timer(io_);
    clock::time_point next_look;
    for (;;) {
        count_open();
        if (const auto now = clock::now(); now >= next_look) {
            next_look = now + std::chrono::minutes(1);
            for (const auto number : engine_.close_quiet(clock::wall_ms())) save_soon(number);
        }
        timer.expires_after(std::chrono::seconds(1));
        co_await timer.async_wait(as_result);
    }
}

void records::record(std::uint64_t number, std::string what, std::string target, std::string text,
                     bool done) {
    auto* i = engine_.find(number);
    if (!i) return;
    metrics_->count_action(what, done);
    spdlog::warn("incident {}: {} {}: {}", i->id(), what, target, text);
    i->add_action({std::move(what), std::move(target), clock::wall_ms(), std::move(text)}, done);
    save_soon(number);
}

void records::note_self_seal(const std::string& node, std::int64_t at_ms, const std::string& text) {
    constexpr const char* agent_seal = "agent_seal";
    constexpr std::ptrdiff_t most = 64;
    for (auto it = engine_.all().rbegin(); it != engine_.all().rend(); ++it) {
        const auto& one = it->second;
        const bool here = one.object.node == node || std::ranges::find(one.shown, node) != one.shown.end();
        if (!here || one.closed_ms != 0) continue;
        auto* i = engine_.find(it->first);
        // One for each grave line, some seconds apart.
        if (std::ranges::count(i->actions, agent_seal, &action_record::what) < most)
            i->actions.push_back({agent_seal, node, at_ms, text});
        save_soon(it->first);
        return;
    }
}

void records::after_folding(const std::vector<std::uint64_t>& numbers, limiter& limits) {
    for (const auto number : numbers) {
        const auto* i = engine_.find(number);
        if (!i) continue;
        if (node_stays(*i))
            limits.unspent(number);
        else if (i->decided < action_words().size() && has_limits(static_cast<step_kind>(i->decided)))
            limits.not_wanted(*i, engine_.all());
        say(*i, " closed by " + i->closed_by);
        save_soon(number);
    }
}

task<void> records::save(std::uint64_t number) {
    engine_.touch();
    co_await writer_.save(number);
}

void records::save_soon(std::uint64_t number) {
    engine_.touch();
    writer_.save_soon(number);
}

void records::save_breaker_soon(bool tripped, bool dry_run) {
    metrics_->set_breaker(tripped);
    if (!dry_run) writer_.set_flag(breaker_flag, tripped);
}

task<std::optional<std::vector<bool>>> records::known(std::vector<event> events) {
    const auto count = events.size();
    using answer = result<std::vector<bool>>;
    const std::function<answer(history&)> ask = [events = std::move(events)](history& h) -> answer {
        std::vector<bool> known;
        for (const auto& e : events) {
            BANYAN_TRY(const bool is, h.knows(e));
            known.push_back(is);
        }
        return known;
    };
    auto out = co_await writer_.ask(ask);
    if (!out) {
        complain({errc::unavailable, "the history does not answer: what is new is acted on without it", ""});
        co_return std::nullopt;
    }
    if (*out) co_return std::move(**out);
    complain(out->error());
    // One that is locked knows them, perhaps, and tells in a moment. One that is damaged never does.
    if (out->error().code == errc::unavailable) co_return std::nullopt;
    co_return std::vector<bool>(count);
}

task<void> records::keep(std::vector<kept_event> events, std::set<std::uint64_t> changed) {
    (void)co_await writer_.keep(std::move(events), std::move(changed));
}

std::optional<cursor> records::cursor_of(const std::string& node) const {
    const auto it = cursors_.find(node);
    return it == cursors_.end() ? std::nullopt : std::optional(it->second);
}

void records::note_agent(const std::string& node) {
    if (agents_.insert(node).second) writer_.note_agent(node);
}

void records::move_cursor(std::string node, cursor where) {
    cursors_[node] = where;
    writer_.set_cursor(std::move(node), std::move(where));
}

}  // namespace banyan::fault
