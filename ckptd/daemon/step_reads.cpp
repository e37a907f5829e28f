// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/step_reads.hpp"

#include <fmt/format.h>

#include "ckptd/daemon/request.hpp"
#include "ckptd/daemon/step_places.hpp"
#include "ckptd/store/image_origin.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds look_timeout{5000};

std::unexpected<error> silent(const session_node& holder, const copy_key& key, std::uint32_t rank) {
    return fail(errc::unavailable,
                fmt::format("rank {}'s shard of step {} is on {}, and no answer comes from there", rank,
                            key.step, holder.name));
}

}  // namespace

result<step_reads::wanted> step_reads::find(const client_ptr& client, const json& meta) const {
    const auto s = client->session_of_rank();
    if (!s) return fail(errc::conflict, "no rank is attached on this connection");
    if (s->ranks[client->rank].owner != client->id ||
        first_round(client->generation) != first_round(s->generation))
        return fail(errc::conflict, "a newer step of the job has begun: this process is of an older one");
    const auto& rules = s->agreed->rules();
    if (!rules.has_begun() || !rules.begun_from())
        return fail(errc::conflict, "the ranks have begun from no step that could be read");
    wanted out{s, 0, *rules.begun_from(), nullptr};
    BANYAN_TRY(const auto asked, get_key(meta));
    if (asked != out.key)
        return fail(errc::conflict,
                    fmt::format("the ranks have gone back to step {} since step {} was opened", out.key.step,
                                asked.step));
    BANYAN_TRY(out.rank, json_fields(meta).number("rank", max_world - 1));
    out.here = saved_here(*s, out.rank, out.key);
    return out;
}

copy_ptr step_reads::saved_here(const session& s, std::uint32_t rank, const copy_key& key) {
    for (const auto& c : s.copies) {
        if (c->rank != rank || c->key != key || !c->checked) continue;
        if (const auto of = read_origin(c->data()); of && of->rank == rank) return c;
    }
    return nullptr;
}

task<result<std::vector<session_node>>> step_reads::elsewhere(const wanted& what) {
    const auto s = what.s;
    const auto rank = what.rank;
    const auto key = what.key;
    if (!s->places || s->places->key != key) {
        if (s->slot == 0u) {
            BANYAN_CO_TRY(s->places, known_places(*s));
        } else {
            const auto first = s->request.nodes.front();
            BANYAN_CO_TRY(const auto said, co_await peers_.link_to(first, false)
                                               ->call(peer_message::where, header_of(*s), look_timeout));
            BANYAN_CO_TRY(s->places, read_places(said));
        }
        if (s->places->key != key) co_return fail(errc::conflict, "another round has begun meanwhile");
    }
    const auto known = s->places->of.find(rank);
    if (known == s->places->of.end()) co_return std::vector<session_node>();
    auto out = known->second;
    std::erase_if(out, [&](const auto& node) { return node.name == s->self(); });
    co_return out;
}

json step_reads::question(const wanted& what) const {
    json meta = header_of(*what.s);
    put_key(meta, what.key);
    meta["rank"] = what.rank;
    meta["uid"] = what.s->request.uid;
    return meta;
}

std::shared_ptr<link> step_reads::way_to(const wanted& what, const session_node& holder) {
    return what.s->slot_of(holder.name) ? peers_.link_to(holder, true) : peers_.new_link(holder);
}

task<answer_meta> step_reads::on_look(client_ptr client, json meta) {
    BANYAN_CO_TRY(const auto what, find(client, meta));
    if (what.here) co_return json{{"bytes", what.here->bytes}, {"chunks", what.here->chunks}};
    BANYAN_CO_TRY(const auto holders, co_await elsewhere(what));
    const session_node* waited_for = nullptr;
    for (const auto& holder : holders) {
        auto ask = question(what);
        ask["look"] = true;
        auto said = co_await way_to(what, holder)->call(peer_message::get, std::move(ask), look_timeout);
        if (said) co_return json{{"bytes", (*said)["bytes"]}, {"chunks", (*said)["chunks"]}};
        if (said.error().code == errc::unavailable) waited_for = &holder;
    }
    if (waited_for) co_return silent(*waited_for, what.key, what.rank);
    co_return json::object();
}

task<answer_meta> step_reads::on_read(client_ptr client, json meta) {
    BANYAN_CO_TRY(const auto what, find(client, meta));
    BANYAN_CO_TRY(const auto chunk, json_fields(meta).number("chunk", UINT32_MAX));
    BANYAN_CO_TRY(const auto bytes, json_fields(meta).number("bytes", chunk_bytes));
    if (what.here) {
        const auto data = what.here->data();
        if (chunk >= chunk_count(data.size()) || chunk_of(data, chunk).size() != bytes)
            co_return fail(errc::invalid_input, "that shard has no such chunk");
        client->body = {what.here->memory, chunk_of(data, chunk)};
        co_return json::object();
    }
    BANYAN_CO_TRY(const auto holders, co_await elsewhere(what));
    const auto room = std::make_shared<std::vector<std::byte>>(bytes);
    const session_node* waited_for = nullptr;
    for (const auto& holder : holders) {
        auto got = co_await way_to(what, holder)->get_chunk(question(what), chunk, *room);
        if (got) {
            what.s->bytes.peer_received += bytes;
            client->body = {room, *room};
            co_return json::object();
        }
        if (got.error().code == errc::unavailable) waited_for = &holder;
    }
    if (waited_for) co_return silent(*waited_for, what.key, what.rank);
    co_return fail(errc::unavailable, fmt::format("rank {}'s shard of step {} is no longer in memory",
                                                  what.rank, what.key.step));
}

answer_meta step_reads::tell_places(const session& s) {
    BANYAN_TRY(const auto places, known_places(s));
    return to_json(places);
}

}  // namespace banyan::ckpt
