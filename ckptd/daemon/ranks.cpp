// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of the ranks on the Unix socket: attach, sealed, finalize, and their end. restore.cpp has restore.
#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds owner_timeout{5000};  // for the process that held the rank before
constexpr auto about_attach = "attach";

}  // namespace

task<daemon::reply> daemon::on_attach(client_ptr client, json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    BANYAN_CO_TRY(const auto rank, json_fields(meta).number("rank", max_world));
    BANYAN_CO_TRY(const auto world, json_fields(meta).number("world", max_world));
    BANYAN_CO_TRY(const auto bytes, json_fields(meta).number("bytes", 1ull << 48));
    // Of another user's job nothing is told, not even whether it is here.
    const auto mine = [&](uid_t owner) { return client->uid == owner || client->uid == 0; };
    auto s = find_session(job);
    if (s && !mine(s->request.uid)) s = nullptr;
    auto why = refused_.find(job);
    if (!s && why != refused_.end() && mine(why->second.uid)) {
        s = co_await open_refused(job);
        why = refused_.find(job);
        if (!s && why != refused_.end())
            co_return fail(errc::not_found, fmt::format("job {}: {}", job, why->second.why.what),
                           why->second.why.hint);
    }
    if (!s)
        co_return fail(
            errc::not_found,
            fmt::format("job {} has no checkpoint session of uid {} on this node", job, client->uid),
            "was it submitted with --train-ckpt? slurmd's log says what went wrong with it");
    attach_request asked{static_cast<std::uint32_t>(rank), world, bytes, std::nullopt};
    if (meta.contains("step")) {
        BANYAN_CO_TRY(const auto step, json_fields(meta).number("step", UINT32_MAX - 1));
        asked.step = static_cast<std::uint32_t>(step);
    }
    auto answer = co_await attach(client, s, asked);
    // Rank 0 says so itself.
    if (!answer && rank != 0)
        warn(
            s, about_attach,
            fmt::format("rank {} on node {} has no checkpoints: {}", rank, s->self(), answer.error().text()));
    co_return answer;
}

task<daemon::reply> daemon::attach(client_ptr client, session_ptr s, const attach_request& asked) {
    const auto rank = asked.rank;
    if (asked.world != s->request.world)
        co_return fail(errc::conflict,
                       fmt::format("job {} has {} ranks, not {}", s->job(), s->request.world, asked.world));
    const auto until = clock::now() + owner_timeout;
    // A process that is attached already belongs to the launch that it came with.
    const bool known = client->attached == s && first_round(client->generation) == first_round(s->generation);
    auto launch = known ? result<std::uint64_t>(first_round(s->generation)) : launch_of(*s, asked.step);
    if (!launch) co_return std::unexpected(launch.error());
    auto entered = co_await enter_launch(s, *launch, client->id);
    while (!entered && *launch > s->generation && clock::now() < until) {
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(50)));
        entered = co_await enter_launch(s, *launch, client->id);
    }
    if (!entered) co_return std::unexpected(entered.error());
    const auto& mine = s->own_ranks();
    if (std::find(mine.begin(), mine.end(), rank) == mine.end())
        co_return fail(errc::conflict, fmt::format("rank {} does not run on node {}", rank, s->self()));
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
    // Taken before the memory is made: of two that come at once the second one waits.
    auto& state = s->ranks[rank];
    state.owner = client->id;
    // It may come a second time, over another connection or with larger regions.
    const bool same = state.last && state.last->pid() == client->pid && state.last->alive() &&
                      first_round(state.generation) == first_round(s->generation);
    if (!same) {
        state.last = std::make_shared<const process>(client->socket.native_handle(), client->pid);
        state.generation = s->generation;
        // A process before this one has trained in this round: all begin anew.
        if (state.began) {
            state.again = true;
            s->agreed->begin_again();
        }
    }
    state.process = state.last;
    BANYAN_CO_CHECK(co_await ensure_memory(s, rank, std::max<std::uint64_t>(asked.bytes, page_bytes)));
    if (s->closed || !client->socket.is_open()) co_return fail(errc::not_found, "the session ended");
    client->attached = s;
    client->rank = rank;
    auto& now = s->ranks[rank];
    client->generation = now.generation;
    scan_buffers(s, rank);
    s->publish();
    keep(s);
    client->passed = now.memory;
    json out;
    out["buffers"] = now.buffers;
    out["buffer_bytes"] = now.buffer_bytes;
    out["generation"] = now.generation;
    out["kept"] = keeper_->is_kept();
    out["warning"] = s->take_untold();
    co_return out;
}

void daemon::on_sealed(const client_ptr& client, const json& meta) {
    const auto s = client->attached;
    const auto buffer = json_fields(meta).number("buffer", max_buffers - 1);
    if (!s || !buffer) return;
    if (s->ranks[client->rank].owner != client->id) {
        ++s->bytes.refused;
        return;
    }
    note_sealed(s, client->rank, *buffer);
}

void daemon::on_skipped(const client_ptr& client, const json& meta) {
    const auto s = client->attached;
    const auto step = json_fields(meta).number("step", max_step);
    if (!s || !step || client->generation != s->generation || s->ranks[client->rank].owner != client->id)
        return;
    ++s->bytes.skipped;
    s->agreed->skipped(client->rank, *step);
}

void daemon::on_disconnect(const client_ptr& client) {
    // A rank that failed to attach may still be noted as owner.
    for (const auto& [job, s] : sessions_) {
        for (auto& [rank, r] : s->ranks) {
            if (r.owner != client->id) continue;
            // Sealed, but killed before it could say so: still a whole checkpoint.
            if (client->generation == s->generation && r.memory) scan_buffers(s, rank);
            r.owner = 0;
            r.process.reset();
        }
        notify(s);
    }
    client->attached.reset();
}

task<daemon::reply> daemon::on_finalize(client_ptr client, json meta) {
    const auto s = client->attached;
    if (!s) co_return fail(errc::conflict, "no rank is attached on this connection");
    if (json_fields(meta).flag("drain").value_or(false)) {
        const auto generation = client->generation;
        co_await drain(s);
        if (generation == s->generation) s->finished.insert(client->rank);
        keep(s);
    }
    co_return json::object();
}

}  // namespace banyan::ckpt
