// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/rank_requests.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/request.hpp"
#include "ckptd/protocol/local_protocol.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds owner_timeout{5000};  // for the process that held the rank before
constexpr auto about_attach = "attach", about_attach_to_state = "attach to a state";

// What the rank has saved in this generation; that the ranks have become complete without it is no answer.
result<void> is_complete(const session& s, std::uint32_t rank) {
    const auto r = s.ranks.find(rank);
    if (r == s.ranks.end() || !r->second.newest) return {};
    const auto& newest = *r->second.newest;
    if (newest.generation != s.generation || s.committed >= newest) return {};
    return fail(errc::unavailable, fmt::format("{}: step {} of rank {} is not complete: {}", in_words(s),
                                               newest.step, rank, lacking_in_words(s, newest)));
}

// Before anything else is read of it.
result<std::uint32_t> agree(const json& meta) {
    const json_fields in(meta);
    protocol_range its;
    if (in.has("protocol")) {
        BANYAN_TRY(const auto said, in.numbers("protocol", 2));
        if (said.size() != 2 || said[0] > said[1])
            return fail(errc::invalid_input, "\"protocol\" is not the oldest and the newest one");
        its = {said[0], said[1]};
    }
    if (const auto agreed = common_protocol(its, local_protocol)) return *agreed;
    return fail(
        errc::conflict,
        fmt::format("the job's libbanyan_ckpt speaks {}, this node's daemon {}",
                    in.has("protocol") ? in_words(its) : "a protocol without a number",
                    in_words(local_protocol)),
        fmt::format("use the libbanyan_ckpt.so.0 beside the daemon's socket, which is of its release{}",
                    its.oldest > local_protocol.newest ? ", or start a newer banyan-ckptd" : ""));
}

bool is_of(const std::shared_ptr<const process>& who, const local_client& client) {
    return who && who->pid() == client.pid && who->started() == client.started && who->alive();
}

}  // namespace

task<answer_meta> rank_requests::on_attach(client_ptr client, json meta, bool named) {
    BANYAN_CO_TRY(const auto protocol, agree(meta));
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
    attach_request asked{static_cast<std::uint32_t>(rank),
                         world,
                         bytes,
                         std::nullopt,
                         json_fields(meta).flag("huge").value_or(false),
                         {}};
    if (named) {
        BANYAN_CO_TRY(asked.state, json_fields(meta).text("state", max_state_name));
        BANYAN_CO_CHECK(check_state_name(asked.state));
    }
    if (meta.contains("step")) {
        BANYAN_CO_TRY(const auto step, json_fields(meta).number("step", UINT32_MAX - 1));
        asked.step = static_cast<std::uint32_t>(step);
    }
    auto answer = co_await attach(client, s, asked);
    if (answer) (*answer)["protocol"] = protocol;
    // Rank 0 says so itself.
    if (!answer && rank != 0)
        to_.users.warn(
            s, asked.state.empty() ? about_attach : about_attach_to_state,
            fmt::format("rank {} on node {} has no checkpoints{}: {}", rank, s->self(),
                        asked.state.empty() ? "" : " of state " + asked.state, answer.error().text()));
    co_return answer;
}

task<result<void>> rank_requests::enter_launch(client_ptr client, session_ptr s, const attach_request& asked,
                                               clock::time_point until) {
    // A process that is attached already, to whatever state, belongs to the launch that it came with.
    if (client->session_of_rank() == s && first_round(client->generation) == first_round(s->generation))
        co_return result<void>{};
    for (const auto& one : with_states(s))
        if (const auto r = one->ranks.find(asked.rank);
            (one != s || !asked.state.empty()) && r != one->ranks.end() &&
            is_of(r->second.process, *client) &&
            first_round(r->second.generation) == first_round(s->generation))
            co_return result<void>{};
    BANYAN_CO_TRY(const auto launch, to_.starts.launch_of(*s, asked.step));
    auto entered = co_await to_.starts.enter(s, launch, client->id);
    while (!entered && launch > s->generation && clock::now() < until) {
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(50)));
        entered = co_await to_.starts.enter(s, launch, client->id);
    }
    co_return entered;
}

task<result<void>> rank_requests::take_rank(client_ptr client, session_ptr job, session_ptr s,
                                            std::uint32_t rank, clock::time_point until) {
    const auto held_by = [&]() -> std::shared_ptr<const process> {
        for (const auto& one : with_states(job)) {
            const auto it = one->ranks.find(rank);
            if (it == one->ranks.end() || it->second.owner == 0 || it->second.owner == client->id) continue;
            const auto& who = it->second.process;
            if (it->second.owner == former_owner && who->pid() == client->pid) continue;
            if (one != s && is_of(who, *client)) continue;  // it has a connection for each of its states
            if (who && who->alive()) return who;
        }
        return nullptr;
    };
    while (held_by() && clock::now() < until)
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(50)));
    if (const auto who = held_by())
        co_return fail(errc::conflict, fmt::format("rank {} is held by process {}", rank, who->pid()));
    auto now = std::make_shared<const process>(client->socket.native_handle(), client->pid, client->started);
    if (now->is_unseen())
        co_return fail(
            errc::exhausted,
            fmt::format("rank {}: the node's banyan-ckptd has no descriptor left to watch process {} by",
                        rank, client->pid),
            "raise LimitNOFILE= of banyan-ckptd, or end jobs on this node");
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
    // It has lost all its states with the process before this one, and asks for them one after the other.
    for (const auto& one : with_states(job)) {
        const auto it = one->ranks.find(rank);
        if (one == s || it == one->ranks.end()) continue;
        auto& other = it->second;
        if (!other.began || other.again || is_of(other.last, *client)) continue;
        other.again = true;
        one->agreed->begin_again();
    }
    co_return result<void>{};
}

task<answer_meta> rank_requests::attach(client_ptr client, session_ptr job, const attach_request& asked) {
    const auto rank = asked.rank;
    const auto other_world = [&] {
        return fail(errc::conflict,
                    fmt::format("job {} has {} ranks, not {}", job->job(), job->request.world, asked.world));
    };
    // Of a job that may shrink the launch tells how many there are.
    if (asked.world != job->request.world && job->request.slots.empty()) co_return other_world();
    // What it says on a connection is of one state.
    if (const auto before = client->session_of_rank();
        before && before->job() == job->job() && before->state != asked.state)
        co_return fail(errc::conflict, "this connection is of another state");
    const auto until = clock::now() + owner_timeout;
    BANYAN_CO_CHECK(co_await enter_launch(client, job, asked, until));
    if (asked.world != job->request.world) co_return other_world();
    const auto& mine = job->own_ranks();
    if (std::find(mine.begin(), mine.end(), rank) == mine.end())
        co_return fail(errc::conflict, fmt::format("rank {} does not run on node {}", rank, job->self()));
    auto s = job;
    if (!asked.state.empty()) {
        BANYAN_CO_TRY(s, to_.starts.open_state(job, asked.state));
    }
    const auto known = s->ranks.find(rank);
    const auto before = known == s->ranks.end()
                            ? std::pair<std::shared_ptr<const process>, std::shared_ptr<const process>>()
                            : std::pair(known->second.last, known->second.finalized);
    // Before the memory is made: of two that come at once the second one waits.
    BANYAN_CO_CHECK(co_await take_rank(client, job, s, rank, until));
    // The whole session: not for a process that attaches again and again. Its memory is kept when it is made.
    if (const auto& now = s->ranks[rank]; before != std::pair(now.last, now.finalized)) core_.keep(s);
    BANYAN_CO_CHECK(
        co_await to_.memory.ensure(s, rank, std::max<std::uint64_t>(asked.bytes, page_bytes), asked.huge));
    if (s->closed || !client->socket.is_open()) co_return fail(errc::not_found, "the session ended");
    client->attached = s;
    client->rank = rank;
    auto& now = s->ranks[rank];
    client->generation = now.generation;
    to_.copies.scan_buffers(s, rank);
    s->publish();
    s->beat();
    if (!now.memory)  // by what was found there
        co_return fail(errc::unavailable, fmt::format("rank {} has made holes in its memory", rank));
    const auto files = files_of(now.memory);
    client->passed = files.front();
    const auto header = now.memory->shape().lead() + page_bytes;
    json out;
    if (header != page_bytes) out["header"] = header;
    if (files.size() > 1) {
        auto& each = out["parts"] = json::array();
        for (const auto& f : files) each.push_back((f->size() - (each.empty() ? header : 0)) / now.buffers);
    }
    out["buffers"] = now.buffers;
    out["buffer_bytes"] = now.buffer_bytes;
    out["generation"] = now.generation;
    out["kept"] = core_.keeper->is_kept();
    // What a program may wait for.
    const auto has_buddy = [&](const auto& n) { return &n != &s->request.nodes[n.buddy]; };
    out["replicates"] = std::ranges::all_of(s->request.nodes, has_buddy);
    out["stores"] = s->request.flush != 0 && !s->request.dir.empty();
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
    for (const auto& s : core_.all_sessions()) {
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
        auto drained = co_await to_.ended.drain(s);
        if (drained) drained = is_complete(*s, client->rank);
        if (!drained) co_return json{{"not_stored", drained.error().text()}};  // it needs its memory still
        if (generation == s->generation) s->finished.insert(client->rank);
        core_.keep(s);
    }
    co_return json::object();
}

}  // namespace banyan::ckpt
