// SPDX-License-Identifier: BSD-3-Clause
//
// From a sealed buffer to a commit in memory: checksum, copy to the buddy, vote, commit.
#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/store/safetensors.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds vote_timeout{2000};
constexpr milliseconds busy_timeout{5000};
constexpr milliseconds look_again{20};
constexpr auto about_checksums = "checksums";

}  // namespace

json daemon::header(const session_ptr& s) const {
    json out;
    out["job"] = s->job();
    out["generation"] = s->generation;
    return out;
}

void daemon::note_sealed(const session_ptr& s, std::uint32_t rank, std::size_t buffer) {
    const auto it = s->ranks.find(rank);
    if (it == s->ranks.end() || !it->second.memory || buffer >= it->second.buffers) return;
    const auto& r = it->second;
    const auto view = read_buffer(r.header().buffer[buffer]);
    // The header is the user's to write: nothing in it is used before it is in range.
    if (!view || view->bytes == 0 || view->bytes > r.buffer_bytes || view->generation != s->generation ||
        view->step > max_step)
        return;
    // One at a time: whoever seals a buffer over and over gets one checksum after the other, no queue of
    // them.
    if (s->in_checksum.contains({rank, buffer})) return;
    if (r.header().buffer[buffer].released.load() == view->sequence) return;
    for (const auto& c : s->copies)
        if (c->memory == r.memory && c->buffer == static_cast<int>(buffer) && c->sequence == view->sequence)
            return;
    // A copy of an earlier life of this buffer was overwritten against the rules: it is gone.
    const auto before = s->copies;
    for (const auto& c : before)
        if (c->memory == r.memory && c->buffer == static_cast<int>(buffer)) {
            c->dropped = true;
            std::erase(s->copies, c);
        }
    auto c = std::make_shared<shard_copy>();
    c->rank = rank;
    c->key = {view->generation, view->step};
    c->bytes = view->bytes;
    c->memory = r.memory;
    c->offset = buffer_offset(buffer, r.buffer_bytes);
    c->buffer = static_cast<int>(buffer);
    c->sequence = view->sequence;
    s->copies.push_back(c);
    ++s->bytes.seals;
    ++s->pending;
    s->in_checksum.insert({rank, buffer});
    spawn(secure(s, c, buffer));
}

void daemon::scan_buffers(const session_ptr& s, std::uint32_t rank) {
    const auto it = s->ranks.find(rank);
    if (it == s->ranks.end()) return;
    for (std::size_t i = 0; i < it->second.buffers; ++i) note_sealed(s, rank, i);
}

task<bool> daemon::checksum(session_ptr s, copy_ptr c) {
    const auto before = c->sequence;
    const auto work = [c]() -> result<std::vector<std::uint32_t>> {
        if (c->dropped) return fail(errc::conflict, "dropped meanwhile");
        return chunk_checksums(c->data());
    };
    auto sums = co_await compute_.run(s->request.uid, work);
    if (!sums) {
        if (sums.error().code == errc::exhausted)
            warn(s, about_checksums, fmt::format("a save waits for its checksum: {}", sums.error().text()));
        co_return false;
    }
    s->warnings.works_again(about_checksums);
    c->chunks = std::move(*sums);
    const auto& header = *reinterpret_cast<const rank_memory_header*>(c->memory->data());
    const auto view = read_buffer(header.buffer[static_cast<std::size_t>(c->buffer < 0 ? 0 : c->buffer)]);
    if (c->buffer < 0 || !view || view->sequence != before || view->bytes != c->bytes ||
        view->step != c->key.step || view->generation != c->key.generation) {
        ++s->bytes.torn;
        co_return false;
    }
    c->checked = true;
    co_return true;
}

task<void> daemon::secure(session_ptr s, copy_ptr c, std::size_t buffer) {
    const bool intact = co_await checksum(s, c);
    s->in_checksum.erase({c->rank, buffer});  // c->buffer may be another by now
    if (intact) {
        const auto wanted = [&] { return !s->closed && !c->dropped && c->key.generation == s->generation; };
        if (wanted()) co_await replicate(s, c);
        if (wanted()) co_await cast_vote(s, c);
    } else {
        if (!c->dropped) {
            c->dropped = true;
            std::erase(s->copies, c);
        }
        // What was sealed there meanwhile was not looked at. Not at once: what was lacking may be lacking
        // still.
        asio::steady_timer pause(io_, look_again);
        co_await pause.async_wait(as_result);
        if (!s->closed) note_sealed(s, c->rank, buffer);
    }
    --s->pending;
    notify(s);
}

task<void> daemon::replicate(session_ptr s, copy_ptr c) {
    if (!s->slot) co_return;
    const auto own = *s->slot;
    const auto buddy = s->request.nodes[own].buddy;
    if (buddy == own) co_return;
    const auto name = s->request.nodes[buddy].name;
    const auto to = link_to(s->request.nodes[buddy], true);
    const auto until = clock::now() + busy_timeout;
    const std::function<bool()> wanted = [c, s, born = s->generation] {
        return !c->dropped && !s->closed && s->generation == born;
    };
    // In the order of the steps: the buddy has room for two, and room given to a newer one first could leave
    // every rank with another pair.
    const auto older = [&] {
        return std::any_of(s->copies.begin(), s->copies.end(), [&](const auto& o) {
            return o->rank == c->rank && o->buffer >= 0 && o->key < c->key &&
                   o->key.generation == c->key.generation && !o->replicated && !o->voted;
        });
    };
    while (wanted() && older() && clock::now() < until) co_await s->changed->wait(until);
    std::uint64_t sent = 0;
    while (wanted()) {
        json meta = header(s);
        put_key(meta, c->key);
        meta["rank"] = c->rank;
        meta["bytes"] = c->bytes;
        meta["chunks"] = c->chunks;
        if (clock::now() >= until) meta["force"] = true;
        sent = 0;
        const auto put = co_await to->put(std::move(meta), c->data(), wanted, &sent);
        s->bytes.peer_sent += sent;
        if (put && *put == link::put_result::done) {
            c->replicated = true;
            co_return;
        }
        if (!put) {
            if (wanted() && put.error().code != errc::conflict)
                warn(s, name,
                     fmt::format("node {} does not take copies: state of {} is in its own memory only{}",
                                 name, s->self(),
                                 put.error().code == errc::exhausted ? ": " + put.error().text() : ""));
            else if (wanted())
                spdlog::debug("job {}: rank {} step {}: {}", s->job(), c->rank, c->key.step,
                              put.error().text());
            co_return;
        }
        co_await s->changed->wait(clock::now() + milliseconds(10));
    }
}

task<std::optional<daemon::reply>> daemon::ask_leader(session_ptr s, peer_message type, json meta,
                                                      milliseconds timeout) {
    reply last = fail(errc::unavailable, fmt::format("job {}: no daemon answers", s->job()));
    for (std::size_t i = 0; i < s->request.nodes.size(); ++i) {
        if (s->request.nodes[i].name == s->self()) co_return std::nullopt;
        const auto to = link_to(s->request.nodes[i], false);
        last = co_await to->call(type, meta, timeout);
        // Dead, or alive without a session: the next one leads, for everybody alike.
        if (last || (last.error().code != errc::unavailable && last.error().code != errc::not_found)) break;
    }
    co_return last;
}

task<void> daemon::cast_vote(session_ptr s, copy_ptr c) {
    json meta = header(s);
    put_key(meta, c->key);
    meta["rank"] = c->rank;
    if (c->replicated) meta["replicated"] = true;
    auto answer = co_await ask_leader(s, peer_message::vote, std::move(meta), vote_timeout);
    c->voted = true;
    if (!answer) {
        take_vote(s, c->rank, c->key, c->replicated);
    } else if (*answer) {
        // The leader's word may have been lost on its way to us.
        if (const auto key = get_key(**answer))
            apply_commit(s, *key, (*answer)->contains("replicated"), false);
    }
}

task<void> daemon::vote_again(session_ptr s) {
    const auto before = s->copies;
    for (const auto& c : before)
        if (c->buffer >= 0 && c->voted && !c->dropped && c->key.generation == s->generation &&
            (!s->committed || c->key > *s->committed))
            co_await cast_vote(s, c);
}

void daemon::take_vote(const session_ptr& s, std::uint32_t rank, const copy_key& key, bool replicated) {
    // A save of an older generation is no longer in line with what the others restored.
    if (key.generation != s->generation || rank >= s->request.world) return;
    if (s->committed && key <= *s->committed) return;
    const auto outcome = s->votes.vote(key, rank, replicated, s->request.world);
    if (!outcome.complete) {
        if (!s->incomplete_since) s->incomplete_since = clock::now();
        return;
    }
    s->votes.settle(key);
    const auto every = s->request.flush;
    const bool flush = every != 0 && !s->request.dir.empty() && key.step / every > s->flush_epoch;
    json meta = header(s);
    put_key(meta, key);
    if (outcome.replicated) meta["replicated"] = true;
    if (flush) meta["flush"] = true;
    broadcast(s, peer_message::commit, std::move(meta));
    apply_commit(s, key, outcome.replicated, flush);
}

void daemon::apply_commit(const session_ptr& s, const copy_key& key, bool replicated, bool flush) {
    if (!s->committed || key > *s->committed) {
        s->committed = key;
        s->committed_replicated = replicated;
        ++s->bytes.commits;
        s->choice.reset();  // all ranks have saved since: who restarts now wants this one or a newer
        s->votes.settle(key);
        s->incomplete_since.reset();
        if (s->votes.open() != 0) s->incomplete_since = clock::now();
        s->warnings.works_again(user_warnings::votes);
        s->release(false);
        s->publish();
        notify(s);
    }
    if (!flush || s->request.flush == 0) return;
    s->flush_epoch = std::max(s->flush_epoch, key.step / s->request.flush);
    spawn(flush_step(s, key));
}

task<void> daemon::tell(session_ptr s, session_node to, peer_message type, json meta) {
    auto told = co_await link_to(to, false)->call(type, std::move(meta), vote_timeout);
    if (!told) spdlog::debug("job {}: {} did not hear: {}", s->job(), to.name, told.error().text());
}

void daemon::broadcast(const session_ptr& s, peer_message type, json meta) {
    for (const auto& n : s->request.nodes)
        if (n.name != s->self()) spawn(tell(s, n, type, meta));
}

}  // namespace banyan::ckpt
