// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/handover.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/remember.hpp"

namespace banyan::ckpt {
namespace {

// Of two of one job, or of one state, the other one was about to take its place.
void put_in_place(session_ptr& place, const session_ptr& s) {
    if (!place || place->agreed->rules().generation() <= s->agreed->rules().generation()) place = s;
}

}  // namespace

using keeper::contents;

void handover::take_over(std::vector<keeper::handed_over> all) {
    if (core_.keeper->ended().empty()) return;
    kept_memory memory;
    std::vector<std::unique_ptr<keeper::ledger>> ledgers;
    for (auto& one : all) {
        const auto number = one.number;
        if (one.what == contents::ledger) {
            auto kept = keeper::ledger::adopt(core_.keeper, std::move(one));
            if (kept) ledgers.push_back(std::move(*kept));
        } else if (auto kept = shard_memory::adopt(core_.budget, std::move(one)); kept) {
            memory[number] = std::move(*kept);
        } else {
            spdlog::error("{}", kept.error().text());
        }
    }
    std::vector<session_ptr> states;
    for (auto& one : ledgers) {
        const auto s = to_.starts.make_session();
        agreement::agreement agreed;
        const auto text = one->read();
        const auto known = text ? recall(*text, memory, *s, agreed) : std::unexpected(text.error());
        if (!known) spdlog::error("a session is lost: {}", known.error().text());
        if (!known) continue;
        s->remembered.where = std::move(one);
        s->agreed->recall(std::move(agreed), core_.nonce);
        if (s->state.empty())
            put_in_place(core_.sessions[s->job()], s);
        else
            states.push_back(s);
    }
    for (const auto& s : states) {
        const auto job = core_.find_session(s->job());
        // Whether the job has left this node its own record tells: it alone is written when the job is back.
        if (job) {
            s->detached = job->detached;
            s->lease_end = job->lease_end;
            put_in_place(job->states[s->state], s);
        } else {
            spdlog::error("{} is lost: the job's own session is not there", in_words(*s));
        }
    }
    for (const auto& s : core_.all_sessions()) {
        for (const auto& c : s->copies) core_.next_copy = std::max(core_.next_copy, c->number + 1);
        core_.had_session = true;
    }
    for (const auto& s : core_.all_sessions()) resume(s);
    if (core_.budget->pages.huge()) {
        std::vector<std::weak_ptr<shard_memory>> held;
        for (const auto& [number, m] : memory) held.emplace_back(m);
        core_.spawn(count_transparent(std::move(held)));
    }
    spdlog::warn(
        "started again by the keeper, the daemon before ended by {}: {} sessions, {} bytes of memory",
        core_.keeper->ended(), core_.sessions.size(), core_.budget->used());
}

// What was under way begins anew.
void handover::resume(const session_ptr& s) {
    s->launched = clock::now();
    core_.spawn(resume_storage(s));
    const auto before = s->copies;
    for (const auto& c : before) {
        if (!c->own) continue;
        const auto* known = s->agreed->rules().copies().find({c->key, c->rank}, true);
        c->handled = known && known->voted;
        if (!c->checked && c->buffer >= 0) {
            ++s->pending;
            s->in_checksum.insert({c->rank, static_cast<std::size_t>(c->buffer)});
            core_.spawn(to_.copies.secure(s, c, static_cast<std::size_t>(c->buffer)));
        } else if (known && !known->voted) {
            core_.spawn(to_.copies.protect(s, c));
        }
    }
    // Sealed while no daemon was there.
    for (const auto& [rank, r] : s->ranks)
        if (r.generation == s->generation) to_.copies.scan_buffers(s, rank);
    // Also those that ended meanwhile.
    for (const auto& [rank, r] : s->ranks)
        if (r.last) to_.watch.watch(s, rank);
    s->agreed->tick();
    s->publish();
}

// The kernel goes through all of it for that.
task<void> handover::count_transparent(std::vector<std::weak_ptr<shard_memory>> held) {
    using mappings = std::map<std::uintptr_t, std::uint64_t>;
    for (const auto& one : held) {
        const auto m = one.lock();
        if (!m || m->is_reserved()) continue;
        const auto map = [m]() -> result<void> {
            map_huge_pages(m->part(0, m->size()));
            return {};
        };
        (void)co_await run_blocking(core_.workers, map);
    }
    const auto look = []() -> result<mappings> { return transparent_mappings(); };
    const auto seen = co_await run_blocking(core_.workers, look);
    for (const auto& one : held)
        if (const auto m = one.lock(); m && seen) m->see_transparent(*seen);
}

// The user's groups, and the directory as the job's own again.
task<void> handover::resume_storage(session_ptr s) {
    const auto warning = co_await to_.dirs.prepare(s);
    if (!warning.empty()) to_.users.warn(s, s->request.dir, warning);
    if (s->detached)
        co_await to_.ended.leave_in_storage(s);
    else if (s->slot == 0u && s->generation != 0)
        to_.starts.look_at_storage(s);
}

// Processes that ended while no daemon was there, or before they came back to this one.
void handover::watch_former_owners(const session_ptr& s) {
    for (auto& [rank, r] : s->ranks) {
        if (r.owner != former_owner || r.process->alive()) continue;
        to_.copies.scan_buffers(s, rank);
        r.owner = 0;
        r.process.reset();
    }
}

}  // namespace banyan::ckpt
