// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks begin from. The agreement chooses it; this brings the shards of this node's ranks from the
// nearest source, and hands them to the processes when all are to begin.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds answer_within{3000};  // that the ranks wait is said to them after so long
constexpr milliseconds ask_again{500};       // a holder that does not answer
constexpr milliseconds buffer_timeout{10'000};
constexpr int storage_attempts = 3;

}  // namespace

void daemon::note_damage(const session_ptr& s, std::uint32_t rank, const copy_key& key) {
    ++s->bytes.damaged;
    // A user can cause this as often as he likes.
    std::uint64_t held_back = 0;
    if (limiter_.pass(fmt::format("damaged {}", s->job()), clock::now(), held_back))
        spdlog::error(
            "job {}: rank {}'s copy of step {} in this node's memory is damaged and will not be used "
            "({} more since)",
            s->job(), rank, key.step, held_back);
}

// A copy on this node, which becomes the rank's own if it was kept for another node.
task<bool> daemon::take_local(session_ptr s, agreement::held what) {
    while (const auto c = s->find_copy(what.rank, what.key)) {
        const auto work = [c, data = c->data(), keep = c->memory]() -> result<bool> {
            return chunk_checksums(data) == c->chunks;
        };
        const auto same = co_await compute_.run(s->request.uid, work);
        if (s->closed) co_return false;
        if (!same) co_await s->changed->wait(clock::now() + ask_again);  // not looked at is not damaged
        if (!same || c->dropped) continue;
        if (!*same) {
            note_damage(s, what.rank, what.key);
            s->lose_copy(c);
            continue;
        }
        if (!c->own) {
            s->agreed->lose(c->number);
            c->number = next_copy_++;
            c->own = true;
            s->agreed->add({c->number, what, true, true, {}});
        }
        co_return true;
    }
    co_return false;
}

// A free buffer of the rank, where its process cannot come between; else memory of its own.
task<result<copy_ptr>> daemon::room_for(session_ptr s, agreement::held what, std::uint64_t bytes) {
    auto copy = std::make_shared<shard_copy>();
    copy->rank = what.rank;
    copy->key = what.key;
    copy->bytes = bytes;
    const auto known = s->ranks.find(what.rank);
    if (known != s->ranks.end() && known->second.buffer_bytes >= bytes)
        if (const auto buffer = s->spare_buffer(known->second)) {
            auto& r = known->second;
            copy->memory = r.memory;
            copy->offset = buffer_offset(*buffer, r.buffer_bytes);
            copy->buffer = static_cast<int>(*buffer);
            begin_fill(r.header().buffer[*buffer]);
            s->copies.push_back(copy);  // unchecked: nobody takes the buffer
            co_return copy;
        }
    const auto size = round_to_page(bytes);
    if (size > settings_.job_limit() || s->memory_bytes() > settings_.job_limit() - size)
        co_return fail(
            errc::exhausted,
            fmt::format("rank {}'s shard of {} and what job {} has on node {} are more than the {} "
                        "of a job there",
                        what.rank, format_bytes(size), s->job(), settings_.node,
                        format_bytes(settings_.job_limit())),
            "have job_memory_limit in [ckptd] of banyan.conf raised");
    auto budget = budget_;
    const auto name = fmt::format("banyan-shard-{}-{}", s->job(), what.rank);
    const auto work = [budget, name, size] { return shard_memory::make(budget, name, size); };
    BANYAN_CO_TRY(copy->memory, co_await compute_.run(s->request.uid, work));
    s->copies.push_back(copy);
    co_return copy;
}

void daemon::settle(const session_ptr& s, const copy_ptr& c, const char* source) {
    if (c->buffer >= 0) {
        auto& header = *reinterpret_cast<rank_memory_header*>(c->memory->data());
        c->sequence = end_fill(header.buffer[static_cast<std::size_t>(c->buffer)], c->key.step,
                               c->key.generation, c->bytes);
    }
    c->checked = true;
    c->number = next_copy_++;
    s->agreed->add({c->number, {c->key, c->rank}, true, true, {}});
    s->ranks[c->rank].source = source;
}

void daemon::give_back(const session_ptr& s, const copy_ptr& c) {
    c->dropped = true;
    if (c->buffer >= 0) {
        auto& header = *reinterpret_cast<rank_memory_header*>(c->memory->data());
        auto& b = header.buffer[static_cast<std::size_t>(c->buffer)];
        b.released.store(b.sequence.load());
    }
    std::erase(s->copies, c);
}

task<std::optional<bool>> daemon::take_from(session_ptr s, agreement::held what, session_node holder) {
    json meta = header(s);
    put_key(meta, what.key);
    meta["rank"] = what.rank;
    copy_ptr copy;
    std::vector<std::uint32_t> chunks;
    const link::room into = [&](std::uint64_t bytes) -> task<result<std::span<std::byte>>> {
        BANYAN_CO_TRY(copy, co_await room_for(s, what, bytes));
        co_return copy->data();
    };
    const auto got = co_await link_to(holder, true)->get(std::move(meta), into, &chunks);
    if (!got) {
        if (copy) give_back(s, copy);
        std::uint64_t held_back = 0;
        if (limiter_.pass(fmt::format("fetch {}", s->job()), clock::now(), held_back))
            spdlog::warn("job {}: rank {}'s shard from {}: {} ({} more since)", s->job(), what.rank,
                         holder.name, got.error().text(), held_back);
        // No room here is no word on the shard either.
        if (got.error().code == errc::exhausted) warn(s, "memory", got.error().text());
        if (got.error().code == errc::unavailable || got.error().code == errc::exhausted)
            co_return std::nullopt;
        co_return false;
    }
    copy->chunks = chunks;
    const auto work = [copy, keep = copy->memory]() -> result<bool> {
        return chunk_checksums(copy->data()) == copy->chunks;
    };
    const auto intact = co_await compute_.run(s->request.uid, work);
    if (!intact || !*intact || s->closed) {
        if (intact && !*intact) ++s->bytes.damaged;
        give_back(s, copy);
        co_return false;
    }
    s->bytes.peer_received += copy->bytes;
    settle(s, copy, "peer");
    co_return true;
}

task<bool> daemon::take_from_storage(session_ptr s, agreement::held what) {
    const auto user = s->user;
    const auto dir = s->request.dir;
    const auto world = s->request.world;
    std::string why;
    for (int attempt = 0; attempt < storage_attempts; ++attempt) {
        const auto look = [=]() -> result<shard_file> {
            shard_file mine;
            const auto keep = [&](const shard_file& f) {
                if (f.rank == what.rank) mine = f;
            };
            BANYAN_CHECK(scan_step(user, dir, what.key.step, world, keep));
            return mine;
        };
        const auto file = co_await storage_.run(user.uid, look);
        if (file) {
            auto copy = co_await room_for(s, what, file->bytes);
            if (copy) {
                const auto read = [=, into = (*copy)->data(), keep = (*copy)->memory, f = *file] {
                    return read_shard(user, dir, what.key.step, f, into);
                };
                const auto done = co_await storage_.run(user.uid, read);
                if (done && !s->closed) {
                    (*copy)->chunks = file->chunks;
                    s->bytes.storage_read += (*copy)->bytes;
                    settle(s, *copy, "storage");
                    co_return true;
                }
                give_back(s, *copy);
                if (!done) why = done.error().text();
            } else {
                why = copy.error().text();
            }
        } else {
            why = file.error().text();
        }
        if (s->closed) co_return false;
        co_await s->changed->wait(clock::now() + ask_again);
    }
    warn(s, fmt::format("step {}", what.key.step),
         fmt::format("step {} in {} cannot be restored, an older one is looked for: {}", what.key.step, dir,
                     why));
    co_return false;
}

task<bool> daemon::bring(session_ptr s, std::uint32_t rank, agreement::choice from,
                         agreement::ballot number) {
    const agreement::held what{*from.key, rank};
    const auto wanted = [&] { return !s->closed && s->bringing == number; };
    const auto holders = rank < from.holders.size() ? from.holders[rank] : std::vector<std::uint32_t>();
    while (wanted()) {
        const bool here = co_await take_local(s, what);
        if (here) {
            if (s->ranks[rank].source.empty()) s->ranks[rank].source = "local";
            co_return true;
        }
        bool silent = false;
        for (const auto slot : holders) {
            if (!wanted() || slot >= s->request.nodes.size() || slot == s->slot) continue;
            const auto taken = co_await take_from(s, what, s->request.nodes[slot]);
            if (taken.value_or(false)) co_return true;
            silent = silent || !taken;
        }
        if (from.storage && wanted()) {
            const bool read = co_await take_from_storage(s, what);
            if (read) co_return true;
        }
        // A holder that does not answer says nothing about what it holds.
        if (!silent || from.storage) co_return false;
        co_await s->changed->wait(clock::now() + ask_again);
    }
    co_return false;
}

task<void> daemon::bring_all(session_ptr s, agreement::prepare what) {
    const auto number = what.number;
    s->bringing = number;
    // An attempt that was overtaken ends first: it may hold buffers.
    const auto held = co_await s->bring_lock->acquire();
    if (s->closed || s->bringing != number) co_return;
    std::vector<std::uint32_t> failed;
    const auto ranks = s->own_ranks();
    for (const auto rank : ranks) {
        s->ranks[rank].rank = rank;
        s->ranks[rank].source.clear();
        if (!what.what.key) continue;
        const bool brought = co_await bring(s, rank, what.what, number);
        if (!brought) failed.push_back(rank);
        if (s->closed || s->bringing != number) co_return;
    }
    s->agreed->brought(number, std::move(failed));
}

std::string daemon::what_is_waited_for(const session& s) const {
    const auto* c = s.agreed->rules().coordinating();
    if (!c) return fmt::format("node {} has not said what from", s.request.nodes[0].name);
    using phase = agreement::coordinator::phase;
    if (s.hold.watching)
        return fmt::format("whether another job still uses {} is being looked at", s.request.dir);
    if (c->now() == phase::collecting && !s.storage_problem.empty()) return s.storage_problem;
    std::vector<std::string> nodes;
    for (const auto slot : c->waits_for()) nodes.push_back(s.request.nodes[slot].name);
    const auto who = nodes.empty() ? std::string("all nodes") : compress_hostlist(nodes);
    if (c->now() == phase::collecting) return fmt::format("{}: not heard what is there", who);
    if (c->now() == phase::preparing) return fmt::format("{}: the state is being brought", who);
    return fmt::format("{}: not heard that all begin", who);
}

// The restored copy in a buffer of the rank, which waits.
task<result<copy_ptr>> daemon::into_buffer(session_ptr s, std::uint32_t rank) {
    const auto key = *s->agreed->rules().begun_from();
    const auto lost = fail(errc::unavailable,
                           fmt::format("rank {}'s shard of step {} is no longer in memory", rank, key.step));
    const auto* known = s->agreed->rules().copies().find({key, rank}, true);
    const auto c = known ? s->find_copy(known->number) : nullptr;
    if (!c) co_return lost;
    auto& r = s->ranks[rank];
    if (c->buffer >= 0 && c->memory == r.memory) co_return c;
    if (c->bytes > r.buffer_bytes)
        co_return fail(errc::conflict,
                       fmt::format("step {} has {} for rank {}, whose regions have {}", key.step,
                                   format_bytes(c->bytes), rank, format_bytes(r.buffer_bytes)));
    const auto until = clock::now() + buffer_timeout;
    auto buffer = s->spare_buffer(r);
    for (; !buffer && clock::now() < until; buffer = s->spare_buffer(s->ranks[rank]))
        co_await s->changed->wait(clock::now() + milliseconds(50));
    if (!buffer) co_return fail(errc::exhausted, "every buffer is being flushed");
    const auto memory = s->ranks[rank].memory;
    const auto buffer_bytes = s->ranks[rank].buffer_bytes;
    const auto offset = buffer_offset(*buffer, buffer_bytes);
    const auto into = memory->part(offset, c->bytes);
    auto& head = reinterpret_cast<rank_memory_header*>(memory->data())->buffer[*buffer];
    begin_fill(head);
    const auto work = [c, into, memory, keep = c->memory]() -> result<bool> {
        std::memcpy(into.data(), c->data().data(), into.size());
        return chunk_checksums(into) == c->chunks;
    };
    const auto same = co_await compute_.run(s->request.uid, work);
    if (!same) co_return std::unexpected(same.error());
    if (c->dropped || s->closed) co_return lost;
    if (!*same) {
        note_damage(s, rank, key);
        s->lose_copy(c);
        co_return lost;
    }
    c->memory = memory;
    c->offset = offset;
    c->buffer = static_cast<int>(*buffer);
    c->sequence = end_fill(head, key.step, key.generation, c->bytes);
    co_return c;
}

task<daemon::reply> daemon::on_restore(client_ptr client, json meta) {
    const auto s = client->attached;
    if (!s) co_return fail(errc::conflict, "no rank is attached on this connection");
    const bool test = meta.contains("test");
    const auto rank = client->rank;
    const auto launch = first_round(client->generation);
    const auto mine = [&] {
        return !s->closed && s->ranks[rank].owner == client->id && launch == first_round(s->generation);
    };
    if (!mine())
        co_return fail(errc::conflict, "a newer step of the job has begun: this process is of an older one");
    // Whoever has saved and wants to go back takes all with him.
    if (auto& r = s->ranks[rank];
        !test && r.saved && client->generation == s->generation && s->agreed->has_begun()) {
        r.again = true;
        s->agreed->begin_again();
    }
    const struct waiting {
        session_ptr s;
        std::uint32_t rank;
        waiting(session_ptr of, std::uint32_t r) : s(std::move(of)), rank(r) { s->ranks[rank].waits = true; }
        ~waiting() {
            if (const auto at = s->ranks.find(rank); at != s->ranks.end()) at->second.waits = false;
        }
    } waits(s, rank);
    const auto until = clock::now() + answer_within;
    const auto ready = [&] { return s->agreed->has_begun() && !s->ranks[rank].again; };
    while (mine() && !ready() && clock::now() < until) {
        const auto* c = s->agreed->rules().coordinating();
        if (c && c->now() == agreement::coordinator::phase::lost)
            co_return fail(errc::unavailable,
                           "there are checkpoints, but none can be brought back whole; nothing was begun",
                           "banyan-ckpt status and slurmd's log on the nodes say what is damaged or gone");
        // Rank 0's word ends the job: nothing may begin from a directory that is another's.
        if (c && !s->agreed->has_begun() && s->storage_refused)
            co_return std::unexpected(*s->storage_refused);
        co_await s->changed->wait(until);
    }
    if (!mine()) co_return fail(errc::conflict, "the session ended, or a newer step of the job has begun");
    json out = json::object();
    if (!ready()) {
        out["waits"] = fmt::format("the ranks wait for their state: {}", what_is_waited_for(*s));
        co_return out;
    }
    const auto key = s->agreed->rules().begun_from();
    // Whoever only looks at what there is has not gone back to it.
    if (!test || !key) client->generation = s->ranks[rank].generation = s->generation;
    out["generation"] = client->generation;
    out["source"] = "none";
    if (key) out["step"] = key->step;
    if (test && key) {
        // So much memory is to be attached before it can be handed over.
        const auto* held = s->agreed->rules().copies().find({*key, rank}, true);
        if (const auto c = held ? s->find_copy(held->number) : nullptr) out["bytes"] = c->bytes;
    }
    if (test) co_return out;
    s->ranks[rank].began = s->ranks[rank].process;
    keep(s);
    if (!key) co_return out;
    const auto generation = s->generation;
    BANYAN_CO_TRY(const auto copy, co_await into_buffer(s, rank));
    if (!mine() || generation != s->generation)
        co_return fail(errc::conflict, "another round has begun meanwhile");
    const auto& source = s->ranks[rank].source;
    if (source == "local") s->bytes.memory_restored += copy->bytes;
    out["source"] = source;
    out["buffer"] = copy->buffer;
    out["bytes"] = copy->bytes;
    co_return out;
}

}  // namespace banyan::ckpt
