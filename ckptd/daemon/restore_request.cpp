// SPDX-License-Identifier: BSD-3-Clause
//
// A rank asks for its state, and waits until all are to begin.
#include <fmt/format.h>

#include "ckptd/daemon/holes.hpp"
#include "ckptd/daemon/restorer.hpp"
#include "ckptd/store/image_origin.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds answer_within{3000};  // that the ranks wait is said to them after so long
/// A node that does not answer has been asked again, and the first slot's daemon for its word.
constexpr milliseconds once_more{2500};
constexpr milliseconds buffer_timeout{10'000};

/// What came of putting a copy into a buffer.
enum class filled {
    whole,
    damaged,  ///< the copy is
    differs,  ///< it is as it was, and the buffer is not
};

// What a process has to know of the step before it takes its state: how much memory that needs, how many
// ranks saved it, and whose shard it is to begin with, where that is not its own: it takes only the same
// pieces of that. None: it reads by name.
void describe_step(const session& s, std::uint32_t rank, const copy_key& key, json& out) {
    out["step"] = key.step;
    out["key_generation"] = key.generation;
    const auto& mine = s.ranks.at(rank);
    out["source"] = mine.source;
    if (!s.request.dir.empty()) out["dir"] = s.request.dir;
    if (mine.saved_by != 0) out["world"] = mine.saved_by;
    const auto* held = s.agreed->rules().copies().find({key, rank}, true);
    const auto c = held ? s.find_copy(held->number) : nullptr;
    if (!c) return;
    out["bytes"] = c->bytes;
    const auto has = read_origin(c->data());
    if (!has) return;
    out["world"] = has->world;
    if (has->rank != rank || has->world != s.request.world) out["of"] = has->rank;
}

}  // namespace

// The restored copy in a buffer of the rank, which waits.
task<result<copy_ptr>> restorer::into_buffer(session_ptr s, std::uint32_t rank) {
    const auto key = *s->agreed->rules().begun_from();
    const auto lost = fail(errc::unavailable,
                           fmt::format("rank {}'s shard of step {} is no longer in memory", rank, key.step));
    const auto* known = s->agreed->rules().copies().find({key, rank}, true);
    const auto c = known ? s->find_copy(known->number) : nullptr;
    if (!c) co_return lost;
    auto& r = s->ranks[rank];
    if (c->buffer >= 0 && c->memory->shares_with(r.memory.get())) co_return c;
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
    const auto place = std::make_shared<shard_copy>();
    place->rank = rank;
    place->key = key;
    place->bytes = c->bytes;
    place->memory = memory;
    place->offset = offset;
    place->buffer = static_cast<int>(*buffer);
    s->copies.push_back(place);  // unchecked: nobody takes the buffer
    // Nothing is written into pages that are in no budget, and nothing of them is handed out.
    const auto work = [into, memory, from = c->data(), keep = c->memory,
                       chunks = c->chunks]() -> result<filled> {
        if (memory->is_holed()) return filled::differs;
        if (copy_with_checksums(into, from) == chunks) return filled::whole;
        return chunk_checksums(from) == chunks ? filled::differs : filled::damaged;
    };
    const auto done = co_await core_.compute.run(s->request.uid, work);
    if (place->dropped) co_return lost;  // the rank has sealed a step there meanwhile
    const auto give_up = [&](std::unexpected<error> why) {
        give_back(s, place);
        return why;
    };
    if (memory->is_holed()) {
        give_up_holed(users_, s, rank);
        co_return give_up(
            fail(errc::unavailable,
                 fmt::format("rank {} has made holes in its memory: it has to attach again", rank)));
    }
    if (give_up_holed(users_, s, rank)) co_return give_up(lost);
    if (!done) co_return give_up(std::unexpected(done.error()));
    if (c->dropped || c->overtaken || s->closed) co_return give_up(lost);
    // Another request of the rank's has brought it into a buffer meanwhile.
    if (c->buffer >= 0 && c->memory->shares_with(memory.get())) {
        give_back(s, place);
        co_return c;
    }
    if (*done == filled::damaged) {
        users_.note_damage(s, rank, key);
        s->lose_copy(c);
        co_return give_up(lost);
    }
    if (*done == filled::differs)
        co_return give_up(
            fail(errc::unavailable,
                 fmt::format("rank {}'s buffer was written to while its state was put there", rank)));
    c->memory = memory;
    c->offset = offset;
    c->buffer = place->buffer;
    c->sequence = end_fill(head, key.step, key.generation, c->bytes);
    std::erase(s->copies, place);
    co_return c;
}

task<answer_meta> restorer::on_restore(client_ptr client, json meta) {
    const auto s = client->session_of_rank();
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
        !test && r.saved && client->generation == s->generation && s->agreed->rules().has_begun()) {
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
    // Who is about to save waits less.
    const auto within =
        json_fields(meta).number("within_ms", static_cast<std::uint64_t>(answer_within.count()));
    const auto until = clock::now() + (within ? milliseconds(*within) : answer_within);
    // Whoever asks again hears of what there is then.
    const auto asked_anew = clock::now() + once_more;
    const auto ready = [&] { return s->agreed->rules().has_begun() && !s->ranks[rank].again; };
    while (mine() && !ready() && clock::now() < until) {
        const auto* c = s->agreed->rules().coordinating();
        if (c && c->now() == agreement::coordinator::phase::lost)
            co_return fail(errc::unavailable,
                           "there are checkpoints, but none can be brought back whole; nothing was begun",
                           "banyan-ckpt status and slurmd's log on the nodes say what is damaged or gone");
        if (auto gave_up = given_up(*s); gave_up && (s->storage.refused || clock::now() >= asked_anew))
            co_return std::unexpected(std::move(*gave_up));
        co_await s->changed->wait(clock::now() < asked_anew ? std::min(until, asked_anew) : until);
    }
    if (!mine()) co_return fail(errc::conflict, "the session ended, or a newer step of the job has begun");
    json out = json::object();
    if (!ready()) {
        out["waits"] = fmt::format("the ranks wait for their state: {}", what_is_waited_for(*s));
        co_return out;
    }
    auto key = s->agreed->rules().begun_from();
    // Who looks after it has saved would go back to what has become complete since.
    if (test && s->ranks[rank].saved) key = std::max(key, s->committed);
    // Whoever only looks at what there is has not gone back to it.
    if (!test || !key) client->generation = s->ranks[rank].generation = s->generation;
    out["generation"] = client->generation;
    out["source"] = "none";
    if (key) describe_step(*s, rank, *key, out);
    if (test) co_return out;
    s->ranks[rank].began = s->ranks[rank].process;
    core_.keep(s);
    if (!key || s->ranks[rank].saved_by != 0 || meta.contains("nothing")) co_return out;
    // Another rank's, of more rows: nothing says that this one takes all of it.
    if (out.contains("of") && out["bytes"] > s->ranks[rank].buffer_bytes) co_return out;
    const auto generation = s->generation;
    BANYAN_CO_TRY(const auto copy, co_await into_buffer(s, rank));
    if (!mine() || generation != s->generation)
        co_return fail(errc::conflict, "another round has begun meanwhile");
    if (s->ranks[rank].source == "local") s->bytes.memory_restored += copy->bytes;
    out["buffer"] = copy->buffer;
    out["bytes"] = copy->bytes;
    co_return out;
}

}  // namespace banyan::ckpt
