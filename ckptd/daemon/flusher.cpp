// SPDX-License-Identifier: BSD-3-Clause
//
// The leader's part in a flush.
#include "ckptd/daemon/flusher.hpp"

#include <fmt/format.h>

#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr int most_overtaken = 8;
constexpr std::uint64_t lagging_turns = 3;
constexpr auto about_lag = "durability";

std::uint64_t turn_of(const session& s, const copy_key& key) { return key.step / s.request.flush; }

bool flush_due(const session& s) {
    if (s.request.flush == 0 || s.request.dir.empty() || !s.slot || s.closed || !s.committed) return false;
    // The first turn is that of step 0 alone.
    const auto turn = turn_of(s, *s.committed);
    if (turn == 0 && s.committed->step != 0) return false;
    return turn >= s.flush.next_turn && (!s.durable || *s.committed > *s.durable);
}

// A flush that a newer step has overtaken, and nothing else, is errc::exhausted here: that is tried again at
// once. Where storage or memory is full that helps nobody.
std::unexpected<error> failed_flush(error why) {
    if (why.code == errc::exhausted) why.code = errc::unavailable;
    return std::unexpected(std::move(why));
}

}  // namespace

void flusher::flush_if_due(const session_ptr& s) {
    if (!flush_due(*s)) return;
    if (s->flush.led_for != s->generation) {
        begin(s, false);
        return;
    }
    // Storage is slower than the turns: durability lags, training does not.
    const auto next = s->flush.now ? turn_of(*s, s->flush.now->key) + 1 : s->flush.next_turn;
    if (turn_of(*s, *s->committed) + 1 < next + lagging_turns) return;
    users_.warn(
        s, about_lag,
        fmt::format(
            "checkpoints reach storage in {} more slowly than they are asked for: step {} is complete in "
            "memory, {} in storage; flush less often",
            s->request.dir, s->committed->step,
            s->durable ? fmt::format("step {}", s->durable->step) : "none"));
}

// Noted before it runs: who asks in the meantime asks for the same one.
void flusher::begin(const session_ptr& s, bool now) {
    s->flush.led_for = s->generation;
    core_.spawn(lead(s, now));
}

task<void> flusher::lead(session_ptr s, bool now) {
    const auto generation = s->generation;
    int overtaken = 0;
    const auto mine = [&] { return !s->closed && s->generation == generation && s->committed; };
    while (mine() && (now || flush_due(*s))) {
        now = false;
        // Also of a flush that fails: the next turn tries again.
        s->flush.next_turn = std::max(s->flush.next_turn, turn_of(*s, *s->committed) + 1);
        const auto done = co_await flush_once(s);
        if (done || !mine()) continue;
        // The step went before all had begun to write it: the next one is tried at once, a few times.
        if (done.error().code == errc::exhausted && ++overtaken < most_overtaken) {
            now = true;
            continue;
        }
        overtaken = 0;
        ++s->bytes.flush_failures;
        users_.warn(s, s->request.dir, does_not_reach(*s, done.error().text()));
        json word = header_of(*s);
        put_key(word, *s->committed);
        word["flush_failed"] = true;
        peers_.broadcast(s, peer_message::flush, std::move(word));
        s->notify();
    }
    if (s->flush.led_for == generation) s->flush.led_for = 0;
    s->notify();
}

task<result<void>> flusher::flush_once(session_ptr s) {
    const auto generation = s->generation;
    const auto user = s->user;
    const auto owned = co_await directories_.own(s);
    if (!owned) co_return failed_flush(owned.error());
    const auto& owner = *owned;
    const auto open = [user, owner] { return open_flush(user, owner); };
    const auto folder = co_await core_.storage.run(user.uid, open);
    if (!folder) {
        directories_.lost(s, owner, folder.error());
        co_return failed_flush(folder.error());
    }
    result<void> done = fail(errc::conflict, "a newer step of the job has begun");
    if (!s->closed && s->generation == generation && s->committed) {
        flush_state fresh;
        fresh.key = *s->committed;  // the newest that there is now: the nodes have it still
        fresh.folder = *folder;
        fresh.files.resize(s->request.world);
        fresh.digests.resize(s->request.world);
        fresh.alike = s->flush.alike;
        const auto turn = turn_of(*s, fresh.key);
        if (s->flush.newest_turn && turn > *s->flush.newest_turn)
            s->bytes.flushes_skipped += turn - *s->flush.newest_turn - 1;
        s->flush.newest_turn = turn;
        s->flush.next_turn = std::max(s->flush.next_turn, turn + 1);
        s->flush.now = std::move(fresh);
        done = co_await gather_files(s, *folder);
        if (done) done = co_await commit_files(s, owner);
        if (s->flush.now && s->flush.now->folder == *folder) s->flush.now.reset();
    }
    if (!done) {
        const auto drop = [user, owner, folder]() -> result<bool> {
            drop_flush(user, owner.dir, *folder);
            return true;
        };
        (void)co_await core_.storage.run(user.uid, drop);
    }
    co_return done;
}

task<result<void>> flusher::commit_files(session_ptr s, claim owner) {
    const auto folder = s->flush.now->folder;
    const auto key = s->flush.now->key;
    const auto world = static_cast<std::uint32_t>(s->flush.now->files.size());
    manifest m{s->job(), key.step, key.generation, world, {}};
    for (auto& f : s->flush.now->files) m.files.push_back(std::move(*f));
    const auto user = s->user;
    const auto work = [user, owner, folder, m] { return commit_step(user, owner, folder, m); };
    const auto committed = co_await core_.storage.run(user.uid, work);
    if (!committed) {
        directories_.lost(s, owner, committed.error());
        co_return failed_flush(committed.error());
    }
    ++s->bytes.flushes;
    json meta = header_of(*s);
    put_key(meta, key);
    peers_.broadcast(s, peer_message::durable, std::move(meta));
    apply_durable(s, key);
    const auto tidy = [user, owner, key, keep = keep_rule{core_.config.keep, s->request.milestone}] {
        return remove_older_steps(user, owner, key.step, keep);
    };
    const auto tidied = co_await core_.storage.run(user.uid, tidy);
    if (!tidied) spdlog::warn("{}: older steps stay in storage: {}", in_words(*s), tidied.error().text());
    co_return result<void>{};
}

void flusher::apply_durable(const session_ptr& s, const copy_key& key) {
    if (s->durable && key <= *s->durable) return;
    s->durable = key;
    s->agreed->stored(key, core_.config.keep);
    s->warnings.works_again(s->request.dir);
    if (s->warnings.newest.find(s->request.dir) != std::string::npos) s->warnings.newest.clear();
    core_.keep(s);
    s->publish();
    s->notify();
}

}  // namespace banyan::ckpt
