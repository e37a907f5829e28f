// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/rank_requests.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/request.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds owner_timeout{5000};  // for the process that held the rank before
constexpr auto about_attach = "attach";

}  // namespace

task<answer_meta> rank_requests::on_attach(client_ptr client, json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    BANYAN_CO_TRY(const auto rank, json_fields(meta).number("rank", max_world));
    BANYAN_CO_TRY(const auto world, json_fields(meta).number("world", max_world));
    BANYAN_CO_TRY(const auto bytes, json_fields(meta).number("bytes", 1ull << 48));
    // Of another user's job nothing is told, not even whether it is here.
    const auto mine = [&](uid_t owner) { return client->uid == owner || client->uid == 0; };
    auto s = core_.find_session(job);
    if (s && !mine(s->request.uid)) s = nullptr;
    const auto refused_to_him = [&] {
        const auto* why = to_.jobs.refused(job);
        return why && mine(why->uid) ? why : nullptr;
    };
    if (!s && refused_to_him()) {
        s = co_await to_.jobs.open_refused(job);
        const auto* why = refused_to_him();
        if (!s && why)
            co_return fail(errc::not_found, fmt::format("job {}: {}", job, why->why.what), why->why.hint);
    }
    if (!s)
        co_return fail(
            errc::not_found,
            fmt::format("job {} has no checkpoint session of uid {} on this node", job, client->uid),
            "was it submitted with --train-ckpt? slurmd's log says what went wrong with it");
    attach_request asked{static_cast<std::uint32_t>(rank), world, bytes, std::nullopt,
                         json_fields(meta).flag("parts").value_or(false)};
    if (meta.contains("step")) {
        BANYAN_CO_TRY(const auto step, json_fields(meta).number("step", UINT32_MAX - 1));
        asked.step = static_cast<std::uint32_t>(step);
    }
    auto answer = co_await attach(client, s, asked);
    // Rank 0 says so itself.
    if (!answer && rank != 0)
        to_.users.warn(
            s, about_attach,
            fmt::format("rank {} on node {} has no checkpoints: {}", rank, s->self(), answer.error().text()));
    co_return answer;
}

task<result<void>> rank_requests::enter_launch(client_ptr client, session_ptr s, const attach_request& asked,
                                               clock::time_point until) {
    // A process that is attached already belongs to the launch that it came with.
    if (client->session_of_rank() == s && first_round(client->generation) == first_round(s->generation))
        co_return result<void>{};
    BANYAN_CO_TRY(const auto launch, to_.starts.launch_of(*s, asked.step));
    auto entered = co_await to_.starts.enter(s, launch, client->id);
    while (!entered && launch > s->generation && clock::now() < until) {
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(50)));
        entered = co_await to_.starts.enter(s, launch, client->id);
    }
    co_return entered;
}

task<result<void>> rank_requests::take_rank(client_ptr client, session_ptr s, std::uint32_t rank,
                                            clock::time_point until) {
    const auto taken = [&] {
        const auto it = s->ranks.find(rank);
        if (it == s->ranks.end() || it->second.owner == 0 || it->second.owner == client->id) return false;
        if (it->second.owner == former_owner && it->second.process->pid() == client->pid) return false;
        return it->second.process && it->second.process->alive();
    };
    while (taken() && clock::now() < until)
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(50)));
    if (taken())
        co_return fail(errc::conflict,
                       fmt::format("rank {} is held by process {}", rank, s->ranks[rank].process->pid()));
    auto now = std::make_shared<const process>(client->socket.native_handle(), client->pid, client->started);
    if (!now->alive())
        co_return fail(errc::conflict,
                       fmt::format("process {}, which opened this connection, has ended", client->pid),
                       "a process that was forked has to open its own, by bck_init");
    auto& state = s->ranks[rank];
    state.owner = client->id;
    state.client = client;
    state.finalized.reset();
    // It may come a second time, over another connection or with larger regions.
    const bool same = state.last && state.last->pid() == client->pid && state.last->alive() &&
                      first_round(state.generation) == first_round(s->generation);
    if (!same) {
        state.last = std::move(now);
        state.generation = s->generation;
        to_.watch.watch(s, rank);
        // A process before this one has trained in this round: all begin anew.
        if (state.began) {
            state.again = true;
            s->agreed->begin_again();
        }
    }
    state.process = state.last;
    co_return result<void>{};
}

task<answer_meta> rank_requests::attach(client_ptr client, session_ptr s, const attach_request& asked) {
    const auto rank = asked.rank;
    const auto other_world = [&] {
        return fail(errc::conflict,
                    fmt::format("job {} has {} ranks, not {}", s->job(), s->request.world, asked.world));
    };
    // Of a job that may shrink the launch tells how many there are.
    if (asked.world != s->request.world && s->request.slots.empty()) co_return other_world();
    const auto until = clock::now() + owner_timeout;
    BANYAN_CO_CHECK(co_await enter_launch(client, s, asked, until));
    if (asked.world != s->request.world) co_return other_world();
    const auto& mine = s->own_ranks();
    if (std::find(mine.begin(), mine.end(), rank) == mine.end())
        co_return fail(errc::conflict, fmt::format("rank {} does not run on node {}", rank, s->self()));
    // Before the memory is made: of two that come at once the second one waits.
    BANYAN_CO_CHECK(co_await take_rank(client, s, rank, until));
    BANYAN_CO_CHECK(
        co_await to_.memory.ensure(s, rank, std::max<std::uint64_t>(asked.bytes, page_bytes), !asked.parts));
    if (s->closed || !client->socket.is_open()) co_return fail(errc::not_found, "the session ended");
    client->attached = s;
    client->rank = rank;
    auto& now = s->ranks[rank];
    client->generation = now.generation;
    to_.copies.scan_buffers(s, rank);
    s->publish();
    core_.keep(s);
    const auto files = files_of(now.memory);
    client->passed = files.front();
    json out;
    if (files.size() > 1) {
        auto& each = out["parts"] = json::array();
        for (const auto& f : files)
            each.push_back((f->size() - (each.empty() ? page_bytes : 0)) / now.buffers);
    }
    out["buffers"] = now.buffers;
    out["buffer_bytes"] = now.buffer_bytes;
    out["generation"] = now.generation;
    out["kept"] = core_.keeper->is_kept();
    out["warning"] = s->take_untold();
    co_return out;
}

void rank_requests::on_sealed(const client_ptr& client, const json& meta) {
    const auto s = client->session_of_rank();
    const auto buffer = json_fields(meta).number("buffer", max_buffers - 1);
    if (!s || !buffer) return;
    if (s->ranks[client->rank].owner != client->id) {
        ++s->bytes.refused;
        return;
    }
    to_.copies.note_sealed(s, client->rank, *buffer);
}

answer_meta rank_requests::on_attach_part(const client_ptr& client, const json& meta) {
    const auto none = fail(errc::conflict, "no rank is attached on this connection");
    const auto s = client->session_of_rank();
    if (!s) return none;
    const auto it = s->ranks.find(client->rank);
    if (it == s->ranks.end() || it->second.owner != client->id || !it->second.memory) return none;
    const auto files = files_of(it->second.memory);
    BANYAN_TRY(const auto part, json_fields(meta).number("part", files.size() - 1));
    client->passed = files[part];
    return json{{"part", part}};
}

void rank_requests::on_skipped(const client_ptr& client, const json& meta) {
    const auto s = client->session_of_rank();
    const auto step = json_fields(meta).number("step", max_step);
    if (!s || !step || client->generation != s->generation || s->ranks[client->rank].owner != client->id)
        return;
    ++s->bytes.skipped;
    s->agreed->skipped(client->rank, *step);
}

void rank_requests::on_disconnect(const client_ptr& client) {
    // A rank that failed to attach may still be noted as owner.
    for (const auto& [job, s] : core_.sessions) {
        for (auto& [rank, r] : s->ranks) {
            if (r.owner != client->id) continue;
            // Sealed, but killed before it could say so: still a whole checkpoint.
            if (client->generation == s->generation && r.memory) to_.copies.scan_buffers(s, rank);
            r.owner = 0;
            r.process.reset();
        }
        s->notify();
    }
    client->attached.reset();
}

task<answer_meta> rank_requests::on_finalize(client_ptr client, json meta) {
    const auto s = client->session_of_rank();
    if (!s) co_return fail(errc::conflict, "no rank is attached on this connection");
    if (auto& r = s->ranks[client->rank]; r.owner == client->id) {
        r.finalized = r.last;
        core_.keep(s);
    }
    if (json_fields(meta).flag("drain").value_or(false)) {
        const auto generation = client->generation;
        co_await to_.ended.drain(s);
        if (generation == s->generation) s->finished.insert(client->rank);
        core_.keep(s);
    }
    co_return json::object();
}

}  // namespace banyan::ckpt
