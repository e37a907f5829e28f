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
constexpr milliseconds order_again{5000};  // a word that got lost, or a daemon that was started again
constexpr milliseconds ask_timeout{5000};
constexpr milliseconds ask_leader_again{1000};
constexpr milliseconds after_failure{1000};  // and longer after the next
constexpr int most_failures = 3;             // of flushes while the newest step is waited for
constexpr std::uint64_t lagging_turns = 3;
constexpr auto about_lag = "durability";

result<shard_file> parse_file(const json_fields& in, std::uint32_t world) {
    shard_file f;
    BANYAN_TRY(f.rank, in.number("rank", world - 1));
    BANYAN_TRY(f.bytes, in.number("bytes"));
    BANYAN_TRY(f.crc32c, in.number("crc32c", UINT32_MAX));
    BANYAN_TRY(f.chunks, in.numbers("chunks", chunk_count(f.bytes)));
    return f;
}

std::uint64_t turn_of(const session& s, const copy_key& key) { return key.step / s.request.flush; }

bool flush_due(const session& s) {
    if (s.request.flush == 0 || s.request.dir.empty() || !s.slot || s.closed || !s.committed) return false;
    return turn_of(s, *s.committed) > s.flush.epoch && (!s.durable || *s.committed > *s.durable);
}

// A flush that a newer step has overtaken, and nothing else, is errc::exhausted here: that is tried again at
// once. Where storage or memory is full that helps nobody.
std::unexpected<error> failed_flush(error why) {
    if (why.code == errc::exhausted) why.code = errc::unavailable;
    return std::unexpected(std::move(why));
}

std::string does_not_reach(const session& s, const std::string& why) {
    return fmt::format("checkpoints do not reach storage in {}: {}", s.request.dir, why);
}

std::string names_of(const session& s, const std::vector<std::uint32_t>& slots) {
    std::vector<std::string> names;
    for (const auto slot : slots) names.push_back(s.request.nodes[slot].name);
    return compress_hostlist(names);
}

// Nodes whose ranks' files are still missing.
std::string missing_nodes(const session& s) {
    const auto& files = s.flush.now->files;
    std::vector<std::string> names;
    for (const auto& n : s.request.nodes)
        if (std::any_of(n.ranks.begin(), n.ranks.end(),
                        [&](auto rank) { return rank < files.size() && !files[rank]; }))
            names.push_back(n.name);
    return compress_hostlist(names);
}

}  // namespace

void flusher::flush_if_due(const session_ptr& s) {
    if (!flush_due(*s)) return;
    if (s->flush.led_for != s->generation) {
        begin(s, false);
        return;
    }
    // Storage is slower than the turns: durability lags, training does not.
    const auto writes = s->flush.now ? turn_of(*s, s->flush.now->key) : s->flush.epoch;
    if (turn_of(*s, *s->committed) < writes + lagging_turns) return;
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
        s->flush.epoch = std::max(s->flush.epoch, turn_of(*s, *s->committed));
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
        const auto turn = turn_of(*s, fresh.key);
        if (s->flush.newest_turn != 0 && turn > s->flush.newest_turn)
            s->bytes.flushes_skipped += turn - s->flush.newest_turn - 1;
        s->flush.newest_turn = turn;
        s->flush.epoch = std::max(s->flush.epoch, turn);
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

task<result<void>> flusher::gather_files(session_ptr s, std::string folder) {
    const auto mine = [&] { return !s->closed && s->flush.now && s->flush.now->folder == folder; };
    const auto key = s->flush.now->key;
    json order = header_of(*s);
    put_key(order, key);
    order["flush"] = folder;
    const auto began = clock::now();
    auto next = began;
    // After one that was overtaken the others are waited for: a node that still writes begins the next flush
    // late, when its step, too, may have gone.
    const auto goes_on = [&] {
        const auto& f = *s->flush.now;
        if (f.failed.empty()) return f.count < f.files.size();
        return f.overtaken && f.answered.size() < s->request.nodes.size() &&
               clock::now() < began + core_.config.complete_within;
    };
    while (mine() && goes_on()) {
        if (clock::now() >= next) {
            peers_.broadcast(s, peer_message::flush, order);
            core_.spawn(write_part(s, key, folder));
            next = clock::now() + order_again;
            s->flush.now->replaced.clear();
        }
        const auto lost = have_replaced(s, silent_slots(s));
        if (s->detached && !lost.empty())
            co_return fail(errc::unavailable, fmt::format("{} does not answer", names_of(*s, lost)),
                           "the job has ended: its newest step stays in memory as long as its lease");
        if (clock::now() > began + core_.config.complete_within)
            users_.warn(
                s, s->request.dir,
                does_not_reach(*s, fmt::format("nothing of step {} from {} after {} s; it does not answer",
                                               key.step, missing_nodes(*s),
                                               std::chrono::duration_cast<std::chrono::seconds>(
                                                   core_.config.complete_within)
                                                   .count())));
        co_await s->changed->wait(std::min(next, clock::now() + milliseconds(500)));
    }
    if (!mine()) co_return fail(errc::conflict, "a newer step of the job has begun");
    if (!s->flush.now->failed.empty())
        co_return fail(s->flush.now->overtaken ? errc::exhausted : errc::unavailable, s->flush.now->failed);
    co_return result<void>{};
}

std::vector<std::uint32_t> flusher::silent_slots(const session_ptr& s) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t slot = 0; slot < s->request.nodes.size(); ++slot) {
        const auto& n = s->request.nodes[slot];
        if (slot != s->slot && !s->flush.now->answered.contains(n.name) &&
            peers_.link_to(n, false)->is_silent())
            out.push_back(slot);
    }
    return out;
}

std::vector<std::uint32_t> flusher::have_replaced(const session_ptr& s,
                                                  const std::vector<std::uint32_t>& slots) {
    std::vector<std::uint32_t> lost;
    auto& flush = *s->flush.now;
    const bool replicated = s->agreed->rules().committed(agreement::level::replicated) >= flush.key;
    for (const auto slot : slots) {
        const auto buddy = s->request.nodes[slot].buddy;
        if (!replicated || buddy == slot || std::find(slots.begin(), slots.end(), buddy) != slots.end()) {
            lost.push_back(slot);
            continue;
        }
        if (!flush.replaced.insert(slot).second) continue;
        if (buddy == s->slot) {
            core_.spawn(write_part(s, flush.key, flush.folder, slot));
            continue;
        }
        json order = header_of(*s);
        put_key(order, flush.key);
        order["flush"] = flush.folder;
        order["for"] = slot;
        peers_.tell_one(s, s->request.nodes[buddy], peer_message::flush, std::move(order));
    }
    return lost;
}

answer_meta flusher::take_files(const session_ptr& s, const std::string& node, const json& meta) {
    const json_fields in(meta);
    BANYAN_TRY(const auto folder, in.text("folder"));
    if (!s->flush.now || s->flush.now->folder != folder || s->flush.now->count == s->flush.now->files.size())
        return json::object();
    auto& flush = *s->flush.now;
    if (meta.contains("failed")) {
        BANYAN_TRY(auto why, in.text("failed"));
        // What no newer step explains is what there is to say.
        const bool overtaken = meta.contains("overtaken");
        if (flush.failed.empty() || (flush.overtaken && !overtaken)) {
            flush.failed = std::move(why);
            flush.overtaken = overtaken;
        }
    } else {
        BANYAN_TRY(const auto listed, in.list("files"));
        std::vector<shard_file> files;
        for (const auto& entry : listed) {
            BANYAN_TRY(auto file, parse_file(entry, static_cast<std::uint32_t>(flush.files.size())));
            files.push_back(std::move(file));
        }
        for (auto& file : files) {
            auto& place = flush.files[file.rank];
            if (!place) ++flush.count;
            place = std::move(file);
        }
    }
    flush.answered.insert(in.has("for") ? in.text("for").value_or(node) : node);
    s->notify();
    return json::object();
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
    const auto tidy = [user, owner, key, keep = core_.config.keep] {
        return remove_older_steps(user, owner, key.step, keep);
    };
    const auto tidied = co_await core_.storage.run(user.uid, tidy);
    if (!tidied) spdlog::warn("{}: older steps stay in storage: {}", in_words(*s), tidied.error().text());
    co_return result<void>{};
}

answer_meta flusher::on_flush_now(const session_ptr& s) {
    if (!s->committed || s->request.dir.empty() || s->request.flush == 0) return json::object();
    if (s->durable && *s->durable >= *s->committed) {
        json has;
        put_key(has, *s->durable);  // the word of it may have been lost
        return has;
    }
    // When one is under way the caller asks again by waiting.
    if (s->flush.led_for != s->generation) begin(s, true);
    return json::object();
}

task<void> flusher::store_newest(session_ptr s, std::function<bool()> goes_on, clock::time_point until) {
    if (s->request.dir.empty() || s->request.flush == 0 || !s->committed) co_return;
    auto failures = s->bytes.flush_failures.load();
    auto ask_at = clock::now();
    int failed = 0;
    while (!s->closed && goes_on() && s->committed && !is_stored(*s) && clock::now() < until) {
        if (const auto now = s->bytes.flush_failures.load(); std::exchange(failures, now) != now) {
            // Of an earlier turn, or of what passes.
            if (++failed == most_failures) co_return;
            ask_at = clock::now() + failed * after_failure;
        }
        if (clock::now() >= ask_at) {
            json meta = header_of(*s);
            const auto asked =
                co_await peers_.ask_leader(s, peer_message::flush_now, std::move(meta), ask_timeout);
            if (!asked) (void)on_flush_now(s);
            if (asked && *asked)
                if (const auto has = get_key(**asked)) apply_durable(s, *has);
            ask_at = clock::now() + ask_leader_again;
        }
        co_await s->changed->wait(std::min(until, ask_at));
    }
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
