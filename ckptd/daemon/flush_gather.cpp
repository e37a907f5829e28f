// SPDX-License-Identifier: BSD-3-Clause
//
// The leader's part in a flush, while the nodes write: who has written, and who writes for those that do not.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "ckptd/daemon/flusher.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds order_again{5000};  // a word that got lost, or a daemon that was started again

result<shard_file> parse_file(const json_fields& in, std::uint32_t world) {
    shard_file f;
    BANYAN_TRY(f.rank, in.number("rank", world - 1));
    BANYAN_TRY(f.bytes, in.number("bytes"));
    BANYAN_TRY(f.crc32c, in.number("crc32c", UINT32_MAX));
    BANYAN_TRY(f.chunks, in.numbers("chunks", chunk_count(f.bytes)));
    if (in.has("pieces_in")) {
        BANYAN_TRY(f.pieces_in, in.number("pieces_in", world - 1));
    }
    return f;
}

// Each lowest rank of those that hold the same.
std::map<std::string, std::uint32_t> alike_in(const flush_state& f) {
    std::map<std::string, std::uint32_t> lowest, out;
    for (std::uint32_t rank = 0; rank < f.digests.size(); ++rank) {
        if (f.digests[rank].empty()) continue;
        const auto [first, is_first] = lowest.emplace(f.digests[rank], rank);
        if (!is_first) out.insert(*first);
    }
    return out;
}

// Whoever writes a file, and how late: it has the same bytes.
void put_alike(json& order, const std::map<std::string, std::uint32_t>& alike) {
    if (alike.empty()) return;
    auto& out = order["alike"] = json::array();
    for (const auto& [digest, rank] : alike) out.push_back({{"digest", digest}, {"rank", rank}});
}

// What a file leaves out is in the other rank's, in this step, too.
bool all_pieces_are_there(const flush_state& f) {
    return std::ranges::all_of(f.files, [&](const auto& file) {
        if (!file->pieces_in) return true;
        const auto& other = f.files[*file->pieces_in];
        return *file->pieces_in < file->rank && !other->pieces_in && !f.digests[file->rank].empty() &&
               f.digests[file->rank] == f.digests[other->rank];
    });
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

bool all_have_answered(const session& s) {
    for (std::uint32_t slot = 0; slot < s.request.nodes.size(); ++slot)
        if (!s.flush.now->answered.contains(s.request.nodes[slot].name) && !s.flush.hung.contains(slot))
            return false;
    return true;
}

}  // namespace

std::string flusher::does_not_reach(const session& s, const std::string& why) {
    return fmt::format("checkpoints do not reach storage in {}: {}", s.request.dir, why);
}

task<result<void>> flusher::gather_files(session_ptr s, std::string folder) {
    const auto mine = [&] { return !s->closed && s->flush.now && s->flush.now->folder == folder; };
    const auto key = s->flush.now->key;
    json order = header_of(*s);
    put_key(order, key);
    order["flush"] = folder;
    put_alike(order, s->flush.now->alike);
    constexpr int slow = 4;
    const auto began = clock::now();
    std::optional<clock::duration> most;  ///< until half of the nodes had answered
    auto next = began;
    // After one that was overtaken the others are waited for: a node that still writes begins the next flush
    // late, when its step, too, may have gone.
    const auto goes_on = [&] {
        const auto& f = *s->flush.now;
        if (f.failed.empty()) return f.count < f.files.size();
        return f.overtaken && !all_have_answered(*s) &&
               clock::now() < began + core_.config.commit_warning_after;
    };
    while (mine() && goes_on()) {
        if (clock::now() >= next) {
            peers_.broadcast(s, peer_message::flush, order);
            core_.spawn(write_part(s, key, folder, s->flush.now->alike));
            next = clock::now() + order_again;
            s->flush.now->replaced.clear();
        }
        // A node whose storage hangs, not one that is slow: as slow as storage is, the others say.
        if (!most && 2 * s->flush.now->answered.size() >= s->request.nodes.size())
            most = clock::now() - began;
        if (most && clock::now() >=
                        began + std::max<clock::duration>(core_.config.commit_warning_after, slow * *most))
            note_hung(s);
        const auto lost = have_replaced(s, silent_slots(s));
        const auto is_silent = [&](std::uint32_t slot) {
            return peers_.link_to(s->request.nodes[slot], false)->is_silent();
        };
        if (s->detached && std::ranges::any_of(lost, is_silent))
            co_return fail(errc::unavailable, fmt::format("{} does not answer", names_of(*s, lost)),
                           "the job has ended: its newest step stays in memory as long as its lease");
        if (clock::now() > began + core_.config.commit_warning_after) tell_of_missing(s, key);
        co_await s->changed->wait(std::min(next, clock::now() + milliseconds(500)));
    }
    if (!mine()) co_return fail(errc::conflict, "a newer step of the job has begun");
    if (!s->flush.now->failed.empty())
        co_return fail(s->flush.now->overtaken ? errc::exhausted : errc::unavailable, s->flush.now->failed);
    s->flush.alike = alike_in(*s->flush.now);
    // The next one is written whole, or by what this one has shown.
    if (!all_pieces_are_there(*s->flush.now))
        co_return fail(errc::exhausted, "ranks that held the same tensors hold others now");
    co_return result<void>{};
}

std::vector<std::uint32_t> flusher::silent_slots(const session_ptr& s) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t slot = 0; slot < s->request.nodes.size(); ++slot) {
        const auto& n = s->request.nodes[slot];
        if (slot != s->slot && !s->flush.now->answered.contains(n.name) &&
            (s->flush.hung.contains(slot) || peers_.link_to(n, false)->is_silent()))
            out.push_back(slot);
    }
    return out;
}

// The daemon there may answer all the same: to the flush a node whose storage is silent is as one that is.
void flusher::note_hung(const session_ptr& s) {
    for (std::uint32_t slot = 0; slot < s->request.nodes.size(); ++slot)
        if (slot != s->slot && !s->flush.now->answered.contains(s->request.nodes[slot].name))
            s->flush.hung.insert(slot);
}

void flusher::tell_of_missing(const session_ptr& s, const copy_key& key) {
    const auto within =
        std::chrono::duration_cast<std::chrono::seconds>(core_.config.commit_warning_after).count();
    users_.warn(s, s->request.dir,
                does_not_reach(*s, fmt::format("nothing of step {} from {} after {} s; the node, or storage "
                                               "there, does not answer",
                                               key.step, missing_nodes(*s), within)));
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
            core_.spawn(write_part(s, flush.key, flush.folder, flush.alike, slot));
            continue;
        }
        json order = header_of(*s);
        put_key(order, flush.key);
        order["flush"] = flush.folder;
        order["for"] = slot;
        put_alike(order, flush.alike);
        peers_.tell_one(s, s->request.nodes[buddy], peer_message::flush, std::move(order));
    }
    return lost;
}

answer_meta flusher::take_files(const session_ptr& s, const std::string& node, const json& meta) {
    const json_fields in(meta);
    BANYAN_TRY(const auto folder, in.text("folder"));
    if (const auto slot = s->slot_of(node); slot && !in.has("for")) s->flush.hung.erase(*slot);
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
        std::vector<std::pair<shard_file, std::string>> files;
        for (const auto& entry : listed) {
            BANYAN_TRY(auto file, parse_file(entry, static_cast<std::uint32_t>(flush.files.size())));
            std::string digest;
            BANYAN_CHECK(entry.may("digest", digest));
            files.emplace_back(std::move(file), std::move(digest));
        }
        for (auto& [file, digest] : files) {
            auto& place = flush.files[file.rank];
            if (!place) ++flush.count;
            flush.digests[file.rank] = std::move(digest);
            place = std::move(file);
        }
    }
    flush.answered.insert(in.has("for") ? in.text("for").value_or(node) : node);
    s->notify();
    return json::object();
}

}  // namespace banyan::ckpt
