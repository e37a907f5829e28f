// SPDX-License-Identifier: BSD-3-Clause
//
// From a commit in memory to a commit in storage. Every node writes its ranks' shards and reports to the
// leader, which writes the manifest and COMMIT. No failure here stops training: it is said once and tried at
// the next turn.
#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds flushed_timeout{5000};

json file_meta(const shard_file& f) {
    json out;
    out["rank"] = f.rank;
    out["bytes"] = f.bytes;
    out["crc32c"] = f.crc32c;
    out["chunks"] = f.chunks;
    return out;
}

result<shard_file> parse_file(const json_fields& in, std::uint32_t world) {
    shard_file f;
    BANYAN_TRY(f.rank, in.number("rank", world - 1));
    BANYAN_TRY(f.bytes, in.number("bytes"));
    BANYAN_TRY(f.crc32c, in.number("crc32c", UINT32_MAX));
    BANYAN_TRY(f.chunks, in.numbers("chunks", chunk_count(f.bytes)));
    return f;
}

}  // namespace

task<result<json>> daemon::write_files(session_ptr s, copy_key key) {
    const auto user = s->user;
    const auto dir = s->request.dir;
    const auto job = s->job();
    const auto world = s->request.world;
    const auto work = [user, dir, key, job, world] {
        if (auto ready = prepare_directory(user, dir); !ready) return ready;
        // Told twice to flush the same checkpoint: its COMMIT stands, and the same bytes are written again.
        if (const auto m = scan_step(user, dir, key.step, world);
            m && m->job == job && m->generation == key.generation)
            return result<void>{};
        return open_step(user, dir, key.step);
    };
    const auto opened = co_await storage_.run(user.uid, work);
    if (!opened) co_return std::unexpected(opened.error());
    json files = json::array();
    const auto ranks = s->own_ranks();
    for (const auto rank : ranks) {
        const auto c = s->find_copy(rank, key);
        if (!c)
            co_return fail(errc::conflict,
                           fmt::format("rank {}'s step {} is no longer in memory", rank, key.step));
        const auto write = [user, dir, c, s] {
            return write_shard(user, dir, c->key.step, c->rank, c->data(), c->chunks,
                               [&](std::uint64_t n) { s->bytes.storage_written += n; });
        };
        auto written = co_await storage_.run(user.uid, write);
        if (!written) co_return std::unexpected(written.error());
        files.push_back(file_meta(*written));
    }
    co_return files;
}

task<void> daemon::flush_step(session_ptr s, copy_key key) {
    if (!s->slot || s->closed || (s->durable && key <= *s->durable)) co_return;
    if (s->flushing) {
        ++s->bytes.flushes_skipped;  // storage is slower than the turns: durability lags, training does not
        if (clock::now() > s->flushing_since + settings_.complete_within)
            warn(s, s->request.dir,
                 fmt::format("checkpoints do not reach storage in {}: it does not answer", s->request.dir));
        co_return;
    }
    s->flushing = true;
    s->flushing_since = clock::now();
    std::vector<copy_ptr> pinned;
    for (const auto rank : s->own_ranks())
        if (const auto c = s->find_copy(rank, key)) pinned.push_back(c);
    for (const auto& c : pinned) c->pinned = true;
    auto files = co_await write_files(s, key);
    for (const auto& c : pinned) c->pinned = false;
    s->flushing = false;
    s->release(false);
    s->publish();
    json meta = header(s);
    put_key(meta, key);
    if (files) {
        meta["files"] = std::move(*files);
    } else {
        ++s->bytes.flush_failures;
        const auto text =
            fmt::format("checkpoints do not reach storage in {}: {}", s->request.dir, files.error().text());
        warn(s, s->request.dir, text);
        meta["failed"] = true;
    }
    notify(s);
    json copy = meta;
    auto answer = co_await ask_leader(s, peer_message::flushed, std::move(copy), flushed_timeout);
    if (!answer) co_await take_files(s, std::move(meta));
}

task<daemon::reply> daemon::take_files(session_ptr s, json meta) {
    BANYAN_CO_TRY(const auto key, get_key(meta));
    if (s->durable && key <= *s->durable) co_return json::object();
    if (!s->flush || s->flush->key < key) {
        flush_state fresh;
        fresh.key = key;
        fresh.files.resize(s->request.world);
        s->flush = std::move(fresh);
    }
    auto& f = *s->flush;
    if (f.key != key || f.failed || f.committing) co_return json::object();
    if (meta.contains("failed")) {
        f.failed = true;
        co_return json::object();
    }
    BANYAN_CO_TRY(const auto files, json_fields(meta).list("files"));
    for (const auto& entry : files) {
        BANYAN_CO_TRY(auto file, parse_file(entry, s->request.world));
        auto& place = f.files[file.rank];
        if (!place) ++f.count;
        place = std::move(file);
    }
    if (f.count == s->request.world) {
        // The entry stays until storage has answered: nobody may begin the same flush anew meanwhile.
        f.committing = true;
        spawn(commit_files(s, f));
    }
    co_return json::object();
}

task<void> daemon::commit_files(session_ptr s, flush_state done) {
    manifest m;
    m.job = s->job();
    m.step = done.key.step;
    m.generation = done.key.generation;
    m.world = s->request.world;
    for (auto& f : done.files) m.files.push_back(std::move(*f));
    const auto user = s->user;
    const auto dir = s->request.dir;
    const auto keep = settings_.keep;
    const auto work = [user, dir, m, keep] { return commit_step(user, dir, m, keep); };
    const auto committed = co_await storage_.run(user.uid, work);
    if (s->flush && s->flush->key == done.key) s->flush.reset();
    if (!committed) {
        ++s->bytes.flush_failures;
        const auto text =
            fmt::format("checkpoints do not reach storage in {}: {}", dir, committed.error().text());
        warn(s, dir, text);
        notify(s);
        co_return;
    }
    ++s->bytes.flushes;
    json meta = header(s);
    put_key(meta, done.key);
    broadcast(s, peer_message::durable, std::move(meta));
    apply_durable(s, done.key);
}

void daemon::apply_durable(const session_ptr& s, const copy_key& key) {
    if (s->durable && key <= *s->durable) return;
    s->durable = key;
    s->warnings.works_again(s->request.dir);
    if (s->warnings.newest.find(s->request.dir) != std::string::npos) s->warnings.newest.clear();
    s->publish();
    notify(s);
}

task<daemon::reply> daemon::on_flush_now(session_ptr s) {
    if (!s->committed || (s->durable && *s->durable >= *s->committed)) co_return json::object();
    if (s->flushing || (s->flush && !s->flush->failed))
        co_return json::object();  // one is under way; the caller asks by waiting
    s->flush.reset();              // what is left there has failed
    const auto key = *s->committed;
    json meta = header(s);
    put_key(meta, key);
    if (s->committed_replicated) meta["replicated"] = true;
    meta["flush"] = true;
    broadcast(s, peer_message::commit, std::move(meta));
    apply_commit(s, key, s->committed_replicated, true);
    co_return json::object();
}

}  // namespace banyan::ckpt
