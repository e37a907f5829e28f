// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of the other nodes' daemons. The connection is authenticated; the generation is checked on every
// message.
#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/crc32c.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t replicas_per_rank = 3;  // with fewer, steps can wait for each other (test/simulator)

task<result<void>> reply_to(peer::channel* to, result<json> answer) {
    json meta = answer ? std::move(*answer) : wire::error_meta(answer.error());
    co_return co_await to->write_frame(static_cast<std::uint16_t>(peer_message::reply), std::move(meta));
}

}  // namespace

result<session_ptr> daemon::fence(const peer_state& from, peer_message type, const json& meta) {
    BANYAN_TRY(const auto job, json_fields(meta).number("job"));
    BANYAN_TRY(const auto generation, json_fields(meta).number("generation"));
    const auto s = find_session(job);
    if (!s)
        return fail(errc::not_found, fmt::format("job {} has no session on node {}", job, settings_.node));
    if (!s->addresses.contains(from.connection->node()))
        return fail(errc::denied, fmt::format("node {} is none of job {}", from.connection->node(), job));
    // The agreement knows itself what an older round of this launch may still say.
    const auto oldest = type == peer_message::agree ? first_round(s->generation) : s->generation;
    if (generation < oldest) {
        ++s->bytes.refused;
        return fail(errc::conflict, fmt::format("job {}: generation {:x} is over, {:x} runs", job, generation,
                                                s->generation));
    }
    return s;
}

task<result<void>> daemon::handle_peer(peer_state* from, wire::header head, json meta) {
    const auto type = static_cast<peer_message>(head.type);
    if (type == peer_message::put_chunk) co_return co_await on_put_chunk(from, head, std::move(meta));
    if (head.body_bytes != 0) co_return fail(errc::invalid_input, "a body where none belongs");
    if (type == peer_message::ping) {
        reply here = json::object();
        co_return co_await reply_to(from->connection.get(), std::move(here));
    }
    if (type == peer_message::put_end) {
        auto ended = co_await on_put_end(from);
        co_return co_await reply_to(from->connection.get(), std::move(ended));
    }
    auto s = fence(*from, type, meta);
    if (!s) {
        reply refused = std::unexpected(s.error());
        co_return co_await reply_to(from->connection.get(), std::move(refused));
    }
    if (type == peer_message::get) co_return co_await on_get(from, *s, std::move(meta));
    if (type == peer_message::put_begin) {
        auto begun = co_await on_put_begin(from, *s, std::move(meta));
        co_return co_await reply_to(from->connection.get(), std::move(begun));
    }
    if (type == peer_message::agree) {
        auto heard = co_await on_agree(*s, from->connection->node(), std::move(meta));
        co_return co_await reply_to(from->connection.get(), std::move(heard));
    }
    if (type == peer_message::flushed) {
        auto taken = take_files(*s, from->connection->node(), meta);
        co_return co_await reply_to(from->connection.get(), std::move(taken));
    }
    auto answer = co_await answer_peer(head.type, *s, std::move(meta));
    co_return co_await reply_to(from->connection.get(), std::move(answer));
}

task<daemon::reply> daemon::answer_peer(std::uint16_t type, session_ptr s, json meta) {
    switch (static_cast<peer_message>(type)) {
        case peer_message::flush: {
            BANYAN_CO_TRY(const auto key, get_key(meta));
            on_flush_word(s, key, meta);
            co_return json::object();
        }
        case peer_message::durable: {
            BANYAN_CO_TRY(const auto key, get_key(meta));
            apply_durable(s, key);
            co_return json::object();
        }
        case peer_message::flush_now:
            co_return co_await on_flush_now(s);
        case peer_message::warning:
            co_return on_warning(s, meta);
        default:
            co_return fail(errc::invalid_input, fmt::format("unknown message type {}", type));
    }
}

void daemon::end_incoming(peer_state* state) {
    if (!state->incoming) return;
    auto& s = state->session;
    const auto& c = state->incoming->copy;
    // Of an overtaken transfer somebody may still be writing into the memory: nobody else gets it.
    if (!state->overtaken) s->arriving.erase(c->rank);
    if (!c->checked && !state->overtaken) s->free_replicas[c->rank].push_back(c->memory);
    state->incoming.reset();
    state->session.reset();
}

task<daemon::reply> daemon::on_put_begin(peer_state* state, session_ptr s, json meta) {
    end_incoming(state);
    BANYAN_CO_TRY(const auto rank64, json_fields(meta).number("rank", s->request.world - 1));
    BANYAN_CO_TRY(const auto key, get_key(meta));
    BANYAN_CO_TRY(const auto bytes, json_fields(meta).number("bytes", 1ull << 48));
    BANYAN_CO_TRY(auto chunks, json_fields(meta).numbers("chunks", chunk_count(bytes)));
    if (bytes == 0 || chunks.size() != chunk_count(bytes))
        co_return fail(errc::invalid_input, "a shard without its checksums");
    const auto rank = static_cast<std::uint32_t>(rank64);
    json out = json::object();
    if (const auto have = s->find_copy(rank, key); have && !have->own && have->chunks == chunks) {
        s->agreed->promised(have->number);
        keep(s);
        out["have"] = true;
        co_return out;
    }
    const auto kept = std::count_if(s->copies.begin(), s->copies.end(),
                                    [&](const auto& c) { return c->rank == rank && !c->own; });
    BANYAN_CO_TRY(const auto generation, json_fields(meta).number("generation"));
    // What a sender of an older generation left half-way, which may be hanging, is of no use any more; nor
    // what the same node did: it sends one copy after the other, so it has given that connection up.
    const auto from = state->connection->node();
    if (const auto at = s->arriving.find(rank);
        at != s->arriving.end() && (at->second.generation < generation || at->second.from == from)) {
        const auto end = std::move(at->second.end);
        s->arriving.erase(at);
        end();
    }
    if (s->arriving.contains(rank) || static_cast<std::size_t>(kept) >= replicas_per_rank) {
        out["busy"] = true;
        co_return out;
    }
    auto copy = std::make_shared<shard_copy>();
    copy->own = false;
    copy->rank = rank;
    copy->key = key;
    copy->bytes = bytes;
    copy->chunks = std::move(chunks);
    auto& spare = s->free_replicas[rank];
    std::erase_if(spare, [&](const auto& m) { return m->size() < bytes; });
    const auto turn = next_copy_++;
    s->arriving[rank] = {from, generation, turn, [] {}};
    if (!spare.empty()) {
        copy->memory = std::move(spare.back());
        spare.pop_back();
    } else {
        const auto name = fmt::format("banyan-replica-{}-{}", s->job(), rank);
        const auto size = round_to_page(bytes);
        if (size > settings_.job_limit() || s->memory_bytes() > settings_.job_limit() - size) {
            s->arriving.erase(rank);
            co_return fail(
                errc::exhausted,
                fmt::format("a copy of {} and what job {} has on node {} are more than the {} of a "
                            "job there",
                            format_bytes(size), s->job(), settings_.node,
                            format_bytes(settings_.job_limit())),
                "have job_memory_limit in [ckptd] of banyan.conf raised");
        }
        auto budget = budget_;
        const auto work = [budget, name, size] { return shard_memory::make(budget, name, size); };
        auto made = co_await run_blocking(workers_, work);
        const auto at = s->arriving.find(rank);
        if (at == s->arriving.end() || at->second.turn != turn)
            co_return fail(errc::conflict, "overtaken by a newer transfer");
        if (!made) {
            s->arriving.erase(at);
            co_return std::unexpected(made.error());
        }
        copy->memory = std::move(*made);
    }
    incoming_shard in;
    in.good.resize(copy->chunks.size());
    in.copy = std::move(copy);
    state->incoming = std::move(in);
    state->session = s;
    state->generation = generation;
    s->arriving[rank].end = [state] {
        state->overtaken = true;
        state->connection->close();
    };
    co_return out;
}

task<result<void>> daemon::on_put_chunk(peer_state* state, wire::header head, json meta) {
    BANYAN_CO_TRY(const auto i, json_fields(meta).number("i"));
    if (!state->incoming || i >= state->incoming->good.size())
        co_return fail(errc::invalid_input, "a chunk of no transfer");
    const auto copy = state->incoming->copy;
    const auto chunk = chunk_of(copy->data(), i);
    if (head.body_bytes != chunk.size()) co_return fail(errc::invalid_input, "a chunk of the wrong length");
    BANYAN_CO_CHECK(co_await state->connection->read_body(chunk));
    const auto work = [chunk] { return crc32c(chunk); };
    const auto crc = co_await run_blocking(workers_, work);
    state->incoming->good[i] = crc == copy->chunks[i];
    auto& s = state->session;
    s->bytes.peer_received += chunk.size();
    if (crc != copy->chunks[i]) ++s->bytes.damaged;
    co_return result<void>{};
}

task<daemon::reply> daemon::on_put_end(peer_state* state) {
    if (!state->incoming) co_return fail(errc::conflict, "no transfer is under way");
    json bad = json::array();
    for (std::size_t i = 0; i < state->incoming->good.size(); ++i)
        if (!state->incoming->good[i]) bad.push_back(i);
    if (bad.empty()) {
        const auto s = state->session;
        const auto copy = state->incoming->copy;
        const bool late = s->closed || state->generation < s->generation;
        copy->checked = !late;
        end_incoming(state);
        if (late) co_return fail(errc::conflict, "a newer step of the job has begun");
        copy->number = next_copy_++;
        s->copies.push_back(copy);
        s->agreed->add({copy->number, {copy->key, copy->rank}, false, true, {}});
        s->agreed->promised(copy->number);
        keep(s);
    }
    json out;
    out["bad"] = std::move(bad);
    co_return out;
}

task<result<void>> daemon::on_get(peer_state* from, session_ptr s, json meta) {
    const auto rank = json_fields(meta).number("rank", s->request.world - 1);
    const auto key = get_key(meta);
    const auto copy = rank && key ? s->find_copy(static_cast<std::uint32_t>(*rank), *key) : nullptr;
    if (!copy) {
        reply missing = fail(errc::not_found, "that shard is not here");
        co_return co_await reply_to(from->connection.get(), std::move(missing));
    }
    // Whoever asks would find damage himself, but then it would still be offered to the next one.
    const auto work = [copy, data = copy->data(), keep = copy->memory]() -> result<bool> {
        return chunk_checksums(data) == copy->chunks;
    };
    const auto same = co_await run_blocking(workers_, work);
    if (!same || !*same || copy->dropped) {
        if (same && !*same && !copy->dropped) {
            note_damage(s, copy->rank, copy->key);
            s->lose_copy(copy);
        }
        reply damaged = fail(errc::not_found, "that shard is not here any more");
        co_return co_await reply_to(from->connection.get(), std::move(damaged));
    }
    json out;
    out["bytes"] = copy->bytes;
    out["chunks"] = copy->chunks;
    reply found = std::move(out);
    BANYAN_CO_CHECK(co_await reply_to(from->connection.get(), std::move(found)));
    for (std::size_t i = 0; i < copy->chunks.size(); ++i) {
        const auto chunk = chunk_of(copy->data(), i);
        json none = json::object();
        BANYAN_CO_CHECK(co_await from->connection->write_frame(
            static_cast<std::uint16_t>(peer_message::get_chunk), std::move(none), chunk));
        s->bytes.peer_sent += chunk.size();
    }
    co_return result<void>{};
}

}  // namespace banyan::ckpt
