// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/history_writer.hpp"

#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "common/clock.hpp"

namespace banyan::fault {

namespace {

constexpr std::chrono::seconds after_failure(1);

/// Locked by another process: that passes. All else is an answer.
bool is_busy(const result<void>& came_of_it) {
    return !came_of_it && came_of_it.error().code == errc::unavailable;
}

/// Another row would meet the same.
bool is_of_all(const result<void>& came_of_it) {
    return is_busy(came_of_it) || (!came_of_it && came_of_it.error().code == errc::exhausted);
}

}  // namespace

void history_writer::round::write(history& h) {
    kept = events.empty() && incidents.empty() ? result<void>{} : h.keep(events, incidents);
    if (kept)
        numbers.clear();
    else if (!is_of_all(kept))
        write_each(h);
    // Of what a row of one table meets the others shall know nothing.
    const bool none = cursors.empty() && flags.empty() && agents.empty();
    moved = none ? result<void>{} : h.keep(cursors, flags, agents);
}

void history_writer::round::write_each(history& h) {
    const auto first = kept;
    kept = events.empty() ? result<void>{} : h.keep(events, {});
    if (is_of_all(kept)) return;
    bool any = kept && !events.empty();
    std::set<std::uint64_t> again, never;
    for (const auto& i : incidents) {
        const auto done = h.keep(i);
        any = any || done;
        if (done) continue;
        (is_of_all(done) ? again : never).insert(i.number);
        refused.push_back({done.error().code,
                           fmt::format("incident {} is not written: {}", i.id(), done.error().what),
                           done.error().hint});
    }
    // A history that takes nothing at all may do so later. One that takes the rest never takes these.
    if (!any) {
        kept = first;
        refused.clear();
        again.merge(never);
    }
    numbers = std::move(again);
}

void history_writer::run(job what) {
    if (unanswered_++ == 0) {
        heard_ = clock::now();
        busy_.emplace();
    }
    asio::post(database_, [this, what = std::move(what), work = asio::make_work_guard(io_)] {
        asio::post(io_, [this, then = what(*history_)] {
            if (--unanswered_ == 0) busy_.reset();
            heard_ = clock::now();
            then();
        });
    });
}

bool history_writer::answers() const {
    return history_ && (unanswered_ == 0 || clock::now() - heard_ < patience);
}

void history_writer::save_soon(std::uint64_t number) {
    next_.numbers.insert(number);
    pump();
}

task<void> history_writer::save(std::uint64_t number) {
    if (!answers() || paused_) {
        save_soon(number);
        co_return;
    }
    auto w = std::make_shared<waiter>(io_);
    next_.waiting.push_back(w);
    save_soon(number);
    w->timer.expires_after(patience);
    if (!w->kept) co_await w->timer.async_wait(as_result);
    w->left = true;
}

void history_writer::set_cursor(std::string node, cursor where) {
    next_.cursors.insert_or_assign(std::move(node), std::move(where));
    pump();
}

void history_writer::set_flag(std::string name, bool on) {
    next_.flags.insert_or_assign(std::move(name), on);
    pump();
}

void history_writer::note_agent(std::string node) {
    next_.agents.insert(std::move(node));
    pump();
}

task<bool> history_writer::keep(std::vector<kept_event> events, std::set<std::uint64_t> changed) {
    auto w = std::make_shared<waiter>(io_);
    next_.waiting.push_back(w);
    std::ranges::move(events, std::back_inserter(next_.events));
    next_.numbers.merge(changed);
    pump();
    while (!w->kept) co_await w->timer.async_wait(as_result);
    co_return *w->kept;
}

void history_writer::pump() {
    if (!history_ || current_ || paused_ || next_.empty()) return;
    current_ = std::make_shared<round>(std::exchange(next_, {}));
    take_copies(*current_);
    run([this, r = current_](history& h) -> std::function<void()> {
        r->write(h);
        return [this, r] { after(*r); };
    });
}

// One that memory has forgotten meanwhile was over, or there were too many of its kind.
void history_writer::take_copies(round& r) const {
    r.incidents.clear();
    for (const auto number : r.numbers)
        if (const auto* i = as_it_is_(number)) r.incidents.push_back(*i);
}

void history_writer::put_back(round& done) {
    if (!done.moved) {
        next_.cursors.merge(done.cursors);  // what came meanwhile is newer
        next_.flags.merge(done.flags);
        next_.agents.merge(done.agents);
    }
    next_.numbers.merge(done.numbers);
    if (done.kept) return;
    if (!is_busy(done.kept)) return;
    std::ranges::move(next_.events, std::back_inserter(done.events));
    next_.events = std::move(done.events);
    std::erase_if(done.waiting, [](const auto& w) { return w->left; });
    std::ranges::move(done.waiting, std::back_inserter(next_.waiting));
    done.waiting.clear();
}

void history_writer::after(round& done) {
    current_.reset();
    for (const auto* came_of_it : {&done.kept, &done.moved})
        if (!*came_of_it) complain_(came_of_it->error());
    for (const auto& e : done.refused) complain_(e);
    put_back(done);
    for (const auto& w : done.waiting) {
        w->kept = done.kept.has_value();
        w->timer.cancel();
    }
    if (done.kept && done.moved && done.refused.empty()) return pump();
    paused_ = true;
    pause_.expires_after(after_failure);
    pause_.async_wait([this](const boost::system::error_code& ec) {
        if (ec) return;
        paused_ = false;
        pump();
    });
}

void history_writer::finish() {
    database_.join();
    if (!history_) return;
    if (current_) put_back(*current_);  // nobody heard any more what came of it
    current_.reset();
    take_copies(next_);
    auto last = std::exchange(next_, {});
    last.write(*history_);
    for (const auto* came_of_it : {&last.kept, &last.moved})
        if (!*came_of_it) complain_(came_of_it->error());
    for (const auto& e : last.refused) complain_(e);
}

}  // namespace banyan::fault
