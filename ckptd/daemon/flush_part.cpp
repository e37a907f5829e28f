// SPDX-License-Identifier: BSD-3-Clause
//
// A node's part in a flush: its ranks' shards into the folder that the leader has made, and a report to it.
#include <fmt/format.h>

#include "ckptd/daemon/flusher.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/store/alike.hpp"
#include "ckptd/store/leftovers.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds flushed_timeout{5000};
constexpr std::size_t max_digest = 64;

struct written_file {
    shard_file file;
    std::string digest;
};

json file_meta(const written_file& f) {
    json out;
    out["rank"] = f.file.rank;
    out["bytes"] = f.file.bytes;
    out["crc32c"] = f.file.crc32c;
    out["chunks"] = f.file.chunks;
    if (f.file.pieces_in) out["pieces_in"] = *f.file.pieces_in;
    if (!f.digest.empty()) out["digest"] = f.digest;
    return out;
}

/// Where and how one shard is written.
struct target {
    storage_user user;
    std::string dir, folder, writer;
    std::uint64_t job = 0;
    std::map<std::string, std::uint32_t> alike;
};

result<written_file> write_one(const target& to, const shard_copy& c, std::span<const std::byte> image,
                               const std::function<void(std::uint64_t)>& written) {
    written_file out;
    // What cannot be read as a shard is written as it is.
    if (auto digest = digest_of_pieces(image)) out.digest = std::move(*digest);
    const auto lowest = to.alike.find(out.digest);
    result<packed_shard> rest = fail(errc::exhausted, "");
    if (lowest != to.alike.end() && lowest->second < c.rank) rest = without_pieces(image, c.chunks, to.job);
    if (!rest && rest.error().code != errc::exhausted) return std::unexpected(rest.error());
    BANYAN_TRY(out.file,
               write_shard(to.user, to.dir, to.folder, c.key.step, c.rank, rest ? rest->image : image,
                           rest ? rest->chunks : c.chunks, written, to.writer));
    if (rest) out.file.pieces_in = lowest->second;
    return out;
}

result<std::map<std::string, std::uint32_t>> read_alike(const json_fields& in, std::uint32_t world) {
    std::map<std::string, std::uint32_t> out;
    if (!in.has("alike")) return out;
    BANYAN_TRY(const auto listed, in.list("alike", world));
    for (const auto& one : listed) {
        BANYAN_TRY(auto digest, one.text("digest", max_digest));
        BANYAN_TRY(const auto rank, one.number("rank", world - 1));
        out.emplace(std::move(digest), static_cast<std::uint32_t>(rank));
    }
    return out;
}

}  // namespace

void flusher::on_flush_word(const session_ptr& s, const copy_key& key, const json& meta) {
    if (meta.contains("flush_failed")) {
        ++s->bytes.flush_failures;
        s->notify();
    }
    const auto folder = json_fields(meta).text("flush");
    if (!folder || !is_flush_name(*folder) || s->request.flush == 0) return;
    s->flush.next_turn = std::max(s->flush.next_turn, key.step / s->request.flush + 1);
    std::optional<std::uint32_t> instead_of;
    if (meta.contains("for")) {
        const auto slot = json_fields(meta).number("for", s->request.nodes.size() - 1);
        if (!slot) return;
        instead_of = static_cast<std::uint32_t>(*slot);
    }
    auto alike = read_alike(json_fields(meta), s->request.world);
    if (!alike) return;
    core_.spawn(write_part(s, key, *folder, std::move(*alike), instead_of));
}

task<result<json>> flusher::write_files(session_ptr s, copy_key key, std::string folder, lowest_ranks alike,
                                        std::vector<std::uint32_t> ranks) {
    const auto user = s->user;
    const auto dir = s->request.dir;
    json files = json::array();
    for (const auto rank : ranks) {
        const auto c = s->find_copy(rank, key);
        if (!c)
            co_return fail(errc::conflict,
                           fmt::format("rank {}'s step {} is no longer in memory", rank, key.step));
        const target to{user, dir, folder, c->own ? "" : ".buddy", s->job(), alike};
        // The copy may move to another place meanwhile, as into a buffer of a rank that begins with it.
        const auto write = [to, c, s, image = c->data(), keep = c->memory] {
            return write_one(to, *c, image, [&](std::uint64_t n) { s->bytes.storage_written += n; });
        };
        auto written = co_await core_.storage.run(user.uid, write);
        if (!written && written.error().code == errc::not_found)
            co_return fail(errc::not_found,
                           fmt::format("node {} does not see the folder that the leader has made: {}",
                                       s->self(), written.error().what),
                           fmt::format("is {} a directory that all nodes of the job share?", dir));
        // Nobody is to have it from here, and the buddy's is as it was.
        if (!written && written.error().code == errc::conflict && !c->dropped && is_as_sealed(*c)) {
            users_.note_damage(s, rank, key);
            s->lose_copy(c);
        }
        if (!written) co_return std::unexpected(written.error());
        files.push_back(file_meta(*written));
    }
    co_return files;
}

task<void> flusher::write_part(session_ptr s, copy_key key, std::string folder, lowest_ranks alike,
                               std::optional<std::uint32_t> instead_of) {
    if (!s->slot || s->closed) co_return;
    // No more where a requeue has given the job other nodes, fewer perhaps.
    const auto is_ours = [&] {
        return !instead_of ||
               (*instead_of < s->request.nodes.size() && s->request.nodes[*instead_of].buddy == s->slot);
    };
    if (!is_ours()) co_return;
    auto& part = instead_of ? s->flush.for_others[*instead_of] : s->flush.own;
    const auto newest = [&] { return part.folder == folder && !s->closed; };
    if (newest()) {
        // Told again while it is written, or because our report got lost.
        if (!part.report.is_null()) co_await report_part(s, part.report);
        co_return;
    }
    json report;
    if (instead_of) report["for"] = s->request.nodes[*instead_of].name;
    report.update(header_of(*s));
    put_key(report, key);
    report["folder"] = folder;
    if (key < part.key) {  // late: it does not end what a newer word has begun
        report["failed"] = fmt::format("step {} is on its way to storage", part.key.step);
        report["overtaken"] = true;
        co_await report_part(s, std::move(report));
        co_return;
    }
    part.key = key;
    part.folder = folder;
    part.report = nullptr;
    // One that was given up may still be in storage's hands. Nothing is pinned meanwhile: a buffer for each
    // would leave the rank none.
    while (part.writing && newest()) co_await s->changed->wait(clock::now() + milliseconds(500));
    if (!newest() || !is_ours()) co_return;
    part.writing = true;
    const auto ranks = instead_of ? s->request.nodes[*instead_of].ranks : s->own_ranks();
    std::vector<copy_ptr> pinned;
    for (const auto rank : ranks)
        if (const auto c = s->find_copy(rank, key)) pinned.push_back(c);
    for (const auto& c : pinned) c->pinned = true;
    auto files = co_await write_files(s, key, folder, std::move(alike), ranks);
    for (const auto& c : pinned) s->unpin(c);
    part.writing = false;
    s->notify();
    if (!newest()) co_return;
    if (files)
        report["files"] = std::move(*files);
    else
        report["failed"] = files.error().text();
    if (!files && s->committed > key) report["overtaken"] = true;
    part.report = report;
    co_await report_part(s, std::move(report));
}

task<void> flusher::report_part(session_ptr s, json report) {
    json copy = report;
    const auto answer =
        co_await peers_.ask_leader(s, peer_message::flushed, std::move(copy), flushed_timeout);
    if (!answer) (void)take_files(s, s->self(), report);
}

}  // namespace banyan::ckpt
