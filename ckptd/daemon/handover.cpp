// SPDX-License-Identifier: BSD-3-Clause
//
// What a keeper holds for this daemon, and what one that is started again makes of it. docs/decisions/012.
#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/remember.hpp"

namespace banyan::ckpt {

using keeper::contents;

void daemon::keep(const session_ptr& s) {
    if (!keeper_->is_kept() || s->closed) return;
    auto text = remember(*s);
    if (text == s->remembered) return;
    if (!s->kept) s->kept = std::make_unique<keeper::ledger>(keeper_);
    const auto written = s->kept->write(std::as_bytes(std::span(text)));
    if (written) {
        s->remembered = std::move(text);
        return;
    }
    std::uint64_t held_back = 0;
    if (limiter_.pass("keep", clock::now(), held_back))
        spdlog::error("job {}: {}: should this daemon end, it would be lost ({} more since)", s->job(),
                      written.error().text(), held_back);
}

void daemon::take_over() {
    auto all = keeper_->take();
    if (keeper_->ended().empty()) return;
    kept_memory memory;
    std::vector<std::unique_ptr<keeper::ledger>> ledgers;
    for (auto& one : all) {
        const auto number = one.number;
        if (one.what == contents::ledger) {
            auto kept = keeper::ledger::adopt(keeper_, std::move(one));
            if (kept) ledgers.push_back(std::move(*kept));
        } else if (auto kept = shard_memory::adopt(budget_, std::move(one)); kept) {
            memory[number] = std::move(*kept);
        } else {
            spdlog::error("{}", kept.error().text());
        }
    }
    for (auto& one : ledgers) {
        const auto s = make_session();
        agreement::agreement agreed;
        const auto text = one->read();
        const auto known = text ? recall(*text, memory, *s, agreed) : std::unexpected(text.error());
        // Of two of one job the other one was about to take its place.
        const bool newer =
            known && (!sessions_.contains(s->job()) ||
                      sessions_[s->job()]->agreed->rules().generation() <= agreed.generation());
        if (!known) spdlog::error("a session is lost: {}", known.error().text());
        if (!newer) continue;
        s->kept = std::move(one);
        s->agreed->recall(std::move(agreed), nonce_);
        for (const auto& c : s->copies) next_copy_ = std::max(next_copy_, c->number + 1);
        sessions_[s->job()] = s;
        had_session_ = true;
    }
    for (const auto& [job, s] : sessions_) resume(s);
    spdlog::warn(
        "started again by the keeper, the daemon before ended by {}: {} sessions, {} bytes of memory",
        keeper_->ended(), sessions_.size(), budget_->used());
}

// What was under way begins anew.
void daemon::resume(const session_ptr& s) {
    s->launched = clock::now();
    // The user's groups, and the directory as the job's own again.
    spawn([](daemon* self, session_ptr who) -> task<void> {
        const auto warning = co_await self->check_directory(who);
        if (!warning.empty()) self->warn(who, who->request.dir, warning);
        if (who->detached)
            co_await self->leave_in_storage(who);
        else if (who->slot == 0u && who->generation != 0)
            co_await self->look_at_storage(who, ++who->look);
    }(this, s));
    const auto before = s->copies;
    for (const auto& c : before) {
        if (!c->own) continue;
        const auto* known = s->agreed->rules().copies().find({c->key, c->rank}, true);
        c->handled = known && known->voted;
        if (!c->checked && c->buffer >= 0) {
            ++s->pending;
            s->in_checksum.insert({c->rank, static_cast<std::size_t>(c->buffer)});
            spawn(secure(s, c, static_cast<std::size_t>(c->buffer)));
        } else if (known && !known->voted) {
            spawn(protect(s, c));
        }
    }
    // Sealed while no daemon was there.
    for (const auto& [rank, r] : s->ranks)
        if (r.generation == s->generation) scan_buffers(s, rank);
    s->agreed->tick();
    s->publish();
}

// Processes that ended while no daemon was there, or before they came back to this one.
void daemon::watch_former_owners(const session_ptr& s) {
    for (auto& [rank, r] : s->ranks) {
        if (r.owner != former_owner || r.process->alive()) continue;
        scan_buffers(s, rank);
        r.owner = 0;
        r.process.reset();
    }
}

}  // namespace banyan::ckpt
