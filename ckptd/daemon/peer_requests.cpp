// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/peer_requests.hpp"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "ckptd/daemon/hang_watch.hpp"
#include "ckptd/daemon/holes.hpp"
#include "ckptd/daemon/packing.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/daemon/step_reads.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "common/crc32c.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds expected_within{4'000};   // of memory that is being made; less than a sender waits
constexpr milliseconds transfer_timeout{6'000};  // above what a sender gives one chunk (link.cpp)

task<result<void>> reply_to(peer::channel* to, result<json> answer) {
    json meta = answer ? std::move(*answer) : wire::error_meta(answer.error());
    co_return co_await to->write_frame(static_cast<std::uint16_t>(peer_message::reply), std::move(meta));
}

}  // namespace

// A transfer keeps its rank's place and memory: a peer that stops in the middle of one, alive as its TCP may
// be, loses them. Between two messages the transfer alone ends: the sender may have been overtaken by a newer
// step, and needs the connection for the next.
void peer_requests::watch_transfer(const std::shared_ptr<peer_state>& state) {
    state->silence.cancel();
    if (!state->incoming) return;
    state->silence.expires_after(transfer_timeout);
    state->silence.async_wait([this, weak = std::weak_ptr(state)](const boost::system::error_code& ec) {
        const auto s = weak.lock();
        if (ec || !s || clock::now() < s->silence.expiry()) return;
        s->handling ? s->connection->close() : end_incoming(s.get());
    });
}

task<void> peer_requests::serve(std::shared_ptr<peer::channel> connection) {
    const auto state = std::make_shared<peer_state>(core_.io);
    state->connection = std::move(connection);
    result<void> whole;
    std::exception_ptr thrown;
    try {
        while (whole && !core_.stopping) {
            watch_transfer(state);
            auto head = co_await state->connection->read_head();
            if (!head) {
                whole = std::unexpected(head.error());
                break;
            }
            state->handling = true;
            whole = co_await handle(state, head->first, std::move(head->second));
            state->handling = false;
        }
    } catch (...) {
        thrown = std::current_exception();
    }
    state->silence.cancel();
    end_incoming(state.get());  // whatever happened: others wait for its place
    // One that hangs up is none of it.
    if (!whole && whole.error().code == errc::denied)
        spdlog::warn("node {}: {}", state->connection->node(), whole.error().text());
    if (thrown) std::rethrow_exception(thrown);
}

result<peer_requests::addressed> peer_requests::fence(const peer_state& from, peer_message type,
                                                      const json& meta) {
    BANYAN_TRY(const auto job, json_fields(meta).number("job"));
    BANYAN_TRY(const auto generation, json_fields(meta).number("generation"));
    auto s = core_.find_session(job);
    if (!s)
        return fail(errc::not_found, fmt::format("job {} has no session on node {}", job, core_.config.node));
    const auto uid = json_fields(meta).number("uid");
    const bool open_to_later =
        type == peer_message::holdings || type == peer_message::get || type == peer_message::leave;
    const bool later_launch =
        open_to_later && uid && *uid == s->request.uid && generation > last_round(s->generation);
    if (!s->addresses.contains(from.connection->node()) && !later_launch)
        return fail(errc::denied, fmt::format("node {} is none of job {}", from.connection->node(), job));
    addressed out{s, s};
    if (meta.contains("state")) {
        BANYAN_TRY(const auto name, json_fields(meta).text("state", max_state_name));
        const auto known = s->states.find(name);
        out.s = known == s->states.end() ? nullptr : known->second;
        if (!out.s) return out;
        s = out.s;
    }
    // The agreement knows itself what an older round of this launch may still say.
    const auto oldest = type == peer_message::agree ? first_round(s->generation) : s->generation;
    if (generation < oldest) {
        ++s->bytes.refused;
        return fail(errc::conflict, fmt::format("job {}: generation {:x} is over, {:x} runs", job, generation,
                                                s->generation));
    }
    core_.heard_of(*s);
    return out;
}

task<result<void>> peer_requests::handle(const std::shared_ptr<peer_state>& from, wire::header head,
                                         json meta) {
    const bool named = (head.type & of_named_state) != 0;
    const auto type = static_cast<peer_message>(head.type & ~of_named_state);
    if (named != meta.contains("state"))
        co_return fail(errc::invalid_input, "a state where none belongs, or none where one does");
    if (type == peer_message::put_chunk) co_return co_await on_put_chunk(from.get(), head, std::move(meta));
    if (type == peer_message::put_begin && head.body_bytes != 0)
        co_return co_await on_put_whole(from, head, std::move(meta));
    if (type == peer_message::agreed || (type == peer_message::agree && head.body_bytes != 0))
        co_return co_await on_packed(from.get(), head, std::move(meta));
    if (head.body_bytes != 0) co_return fail(errc::invalid_input, "a body where none belongs");
    if (type == peer_message::get) co_return co_await on_get(from.get(), std::move(meta));
    auto said = co_await answer(from.get(), type, std::move(meta));
    co_return co_await reply_to(from->connection.get(), std::move(said));
}

task<answer_meta> peer_requests::answer(peer_state* from, peer_message type, json meta) {
    if (type == peer_message::ping) co_return json::object();
    if (type == peer_message::put_end) co_return co_await on_put_end(from);
    BANYAN_CO_TRY(const auto of, fence(*from, type, meta));
    const auto& [job, s] = of;
    const auto& node = from->connection->node();
    if (type == peer_message::agree) {
        std::vector<std::byte> none;
        co_return co_await to_.starts.on_agree(job, node, std::move(meta), std::move(none));
    }
    if (type == peer_message::holdings) {
        BANYAN_CO_TRY(const auto generation, json_fields(meta).number("generation"));
        co_return former_nodes::tell(job, s, generation);
    }
    if (!s)
        co_return fail(errc::unavailable, fmt::format("job {}: that state is not open on node {}", job->job(),
                                                      core_.config.node));
    switch (type) {
        case peer_message::put_begin:
            co_return co_await on_put_begin(from, s, std::move(meta));
        case peer_message::flush: {
            BANYAN_CO_TRY(const auto key, get_key(meta));
            to_.flushes.on_flush_word(s, key, meta);
            co_return json::object();
        }
        case peer_message::where:
            co_return step_reads::tell_places(*s);
        case peer_message::flushed:
            co_return to_.flushes.take_files(s, node, meta);
        case peer_message::durable: {
            BANYAN_CO_TRY(const auto key, get_key(meta));
            to_.flushes.apply_durable(s, key);
            co_return json::object();
        }
        case peer_message::flush_now:
            co_return to_.flushes.on_flush_now(s);
        case peer_message::warning:
            co_return to_.users.on_warning(s, meta);
        case peer_message::standing:
            co_return hang_watch::tell_standings(*s);
        case peer_message::hung:
            co_return hang_watch::on_hung(*s, meta);
        case peer_message::leave: {
            BANYAN_CO_TRY(const auto generation, json_fields(meta).number("generation"));
            BANYAN_CO_CHECK(to_.leaving.on_leave(job, generation));  // of all its states
            co_return json::object();
        }
        default:
            co_return fail(errc::invalid_input,
                           fmt::format("unknown message type {}", static_cast<unsigned>(type)));
    }
}

void peer_requests::end_incoming(peer_state* state) {
    if (!state->incoming) return;
    auto& s = state->session;
    const auto& c = state->incoming->copy;
    // Of an overtaken transfer somebody may still be writing into the memory: nobody else gets it.
    if (!state->overtaken) s->arriving.erase(c->rank);
    if (!c->checked && !state->overtaken) s->free_replicas[c->rank].push_back(c->memory);
    state->incoming.reset();
    state->session.reset();
}

// What a copy before has left, or memory of its own.
task<result<std::shared_ptr<shard_memory>>> peer_requests::room_for(session_ptr s, std::uint32_t rank,
                                                                    std::uint64_t bytes) {
    const auto until = clock::now() + expected_within;
    while (!s->closed && s->expected.contains(rank) && clock::now() < until) co_await s->changed->wait(until);
    auto& spare = s->free_replicas[rank];
    const auto large =
        std::find_if(spare.begin(), spare.end(), [&](const auto& m) { return m->size() >= bytes; });
    if (large != spare.end()) {
        auto memory = std::move(*large);
        spare.erase(large);
        co_return memory;
    }
    std::shared_ptr<shard_memory> smaller;
    if (!spare.empty()) {
        smaller = std::move(spare.back());
        spare.pop_back();
    }
    auto made = co_await to_.memory.replica_memory(s, rank, bytes, std::move(smaller));
    if (made || made.error().code != errc::exhausted) co_return made;
    s->free_replicas.erase(rank);
    co_return co_await to_.memory.replica_memory(s, rank, bytes);
}

task<answer_meta> peer_requests::on_put_begin(peer_state* state, session_ptr s, json meta) {
    end_incoming(state);
    BANYAN_CO_TRY(const auto rank64, json_fields(meta).number("rank", s->request.world - 1));
    BANYAN_CO_TRY(const auto key, get_key(meta));
    BANYAN_CO_TRY(const auto bytes, json_fields(meta).number("bytes", 1ull << 48));
    BANYAN_CO_TRY(auto chunks, json_fields(meta).numbers("chunks", chunk_count(bytes)));
    if (bytes == 0 || chunks.size() != chunk_count(bytes))
        co_return fail(errc::invalid_input, "a shard without its checksums");
    const auto rank = static_cast<std::uint32_t>(rank64);
    json out = json::object();
    if (const auto have = s->find_copy(rank, key);
        have && !have->own && !have->overtaken && have->chunks == chunks) {
        s->agreed->promised(have->number);
        core_.keep(s);
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
    const auto turn = core_.next_copy++;
    s->arriving[rank] = {from, generation, turn, [] {}};
    auto memory = co_await room_for(s, rank, bytes);
    const auto at = s->arriving.find(rank);
    if (at == s->arriving.end() || at->second.turn != turn)
        co_return fail(errc::conflict, "overtaken by a newer transfer");
    if (!memory) {
        s->arriving.erase(at);
        co_return std::unexpected(memory.error());
    }
    auto copy = std::make_shared<shard_copy>();
    copy->own = false;
    copy->rank = rank;
    copy->key = key;
    copy->bytes = bytes;
    copy->chunks = std::move(chunks);
    copy->memory = std::move(*memory);
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

task<result<void>> peer_requests::on_packed(peer_state* from, wire::header head, json meta) {
    if (head.body_bytes > agreement::most_packed)
        co_return fail(errc::invalid_input, "messages of the agreement that are too long");
    std::vector<std::byte> packed(head.body_bytes);
    if (!packed.empty()) {
        BANYAN_CO_CHECK(co_await from->connection->read_body(packed));
    }
    const auto s = fence(*from, peer_message::agree, meta);
    answer_meta said = json::object();
    if (s)
        said = co_await to_.starts.on_agree(s->job, from->connection->node(), std::move(meta),
                                            std::move(packed));
    else
        said = std::unexpected(s.error());
    // Whoever is refused hears of it when the same is said again, as a request.
    const auto type = static_cast<peer_message>(head.type & ~of_named_state);
    if (type == peer_message::agreed) co_return result<void>{};
    co_return co_await reply_to(from->connection.get(), std::move(said));
}

// Where it is not taken its body is read all the same: the stream goes on behind it.
task<result<void>> peer_requests::on_put_whole(const std::shared_ptr<peer_state>& state, wire::header head,
                                               json meta) {
    if (head.body_bytes > put_at_once)
        co_return fail(errc::invalid_input, "a shard that is too long to be put at once");
    auto said = co_await answer(state.get(), peer_message::put_begin, std::move(meta));
    if (said && said->empty()) {
        watch_transfer(state);
        BANYAN_CO_CHECK(co_await take_chunk(state.get(), head, 0));
        said = co_await on_put_end(state.get());
    } else {
        std::vector<std::byte> none(head.body_bytes);
        BANYAN_CO_CHECK(co_await state->connection->read_body(none));
    }
    co_return co_await reply_to(state->connection.get(), std::move(said));
}

task<result<void>> peer_requests::on_put_chunk(peer_state* state, wire::header head, json meta) {
    BANYAN_CO_TRY(const auto i, json_fields(meta).number("i"));
    co_return co_await take_chunk(state, head, i);
}

task<result<void>> peer_requests::take_chunk(peer_state* state, wire::header head, std::uint64_t i) {
    if (!state->incoming || i >= state->incoming->good.size())
        co_return fail(errc::invalid_input, "a chunk of no transfer");
    const auto copy = state->incoming->copy;
    const auto chunk = chunk_of(copy->data(), i);
    if (head.body_bytes != chunk.size()) co_return fail(errc::invalid_input, "a chunk of the wrong length");
    std::uint32_t crc = 0;
    BANYAN_CO_CHECK(co_await state->connection->read_body(chunk, &crc));
    state->incoming->good[i] = crc == copy->chunks[i];
    auto& s = state->session;
    s->bytes.peer_received += chunk.size();
    if (crc != copy->chunks[i]) ++s->bytes.damaged_on_arrival;
    co_return result<void>{};
}

task<answer_meta> peer_requests::on_put_end(peer_state* state) {
    if (!state->incoming) co_return fail(errc::conflict, "no transfer is under way");
    json bad = json::array();
    for (std::size_t i = 0; i < state->incoming->good.size(); ++i)
        if (!state->incoming->good[i]) bad.push_back(i);
    if (bad.empty()) {
        const auto s = state->session;
        const auto copy = state->incoming->copy;
        const bool late = s->closed || state->overtaken || state->generation < s->generation;
        copy->checked = !late;
        end_incoming(state);
        if (late) co_return fail(errc::conflict, "a newer step of the job has begun");
        copy->number = core_.next_copy++;
        s->copies.push_back(copy);
        s->agreed->add({copy->number, {copy->key, copy->rank}, false, true, {}});
        s->agreed->promised(copy->number);
        core_.keep(s);
    }
    json out;
    out["bad"] = std::move(bad);
    co_return out;
}

task<result<void>> peer_requests::on_get(peer_state* from, json meta) {
    const auto fenced = fence(*from, peer_message::get, meta);
    if (!fenced) {
        answer_meta refused = std::unexpected(fenced.error());
        co_return co_await reply_to(from->connection.get(), std::move(refused));
    }
    const auto& s = fenced->s;
    const auto rank = json_fields(meta).number("rank", most_ranks(fenced->job->request) - 1);
    const auto key = get_key(meta);
    const bool looks = meta.contains("look"), is_part = meta.contains("only");
    copy_ptr copy;
    if (s && rank && key)
        copy = looks || is_part ? step_reads::saved_here(*s, static_cast<std::uint32_t>(*rank), *key)
                                : s->find_copy(static_cast<std::uint32_t>(*rank), *key);
    if (!copy) {
        answer_meta missing = fail(errc::not_found, "that shard is not here");
        co_return co_await reply_to(from->connection.get(), std::move(missing));
    }
    const auto memory = copy->memory;  // the copy may move or go meanwhile
    const auto data = copy->data();
    const auto only = json_fields(meta).number("only", copy->chunks.size() - 1);
    if (is_part && !only) {
        answer_meta missing = fail(errc::invalid_input, "that shard has no such chunk");
        co_return co_await reply_to(from->connection.get(), std::move(missing));
    }
    json out = json::object();
    if (!is_part) {
        out["bytes"] = copy->bytes;
        out["chunks"] = copy->chunks;
    }
    answer_meta found = std::move(out);
    BANYAN_CO_CHECK(co_await reply_to(from->connection.get(), std::move(found)));
    const auto first = only.value_or(0), end = looks ? 0 : is_part ? first + 1 : copy->chunks.size();
    for (auto i = first; i < end; ++i) {
        const auto chunk = chunk_of(data, i);
        json none = json::object();
        std::uint32_t crc = 0;
        BANYAN_CO_CHECK(co_await from->connection->write_frame(
            static_cast<std::uint16_t>(peer_message::get_chunk), std::move(none), chunk, &crc));
        s->bytes.peer_sent += chunk.size();
        // Whoever asks finds damage himself, but then it would still be offered to the next one.
        if (crc != copy->chunks[i] && !copy->dropped && copy->checked) {
            if (give_up_holed(to_.users, s, copy->rank)) continue;
            if (is_as_sealed(*copy)) to_.users.note_damage(s, copy->rank, copy->key);
            s->lose_copy(copy);
        }
    }
    co_return result<void>{};
}

}  // namespace banyan::ckpt
