// SPDX-License-Identifier: BSD-3-Clause
//
// What to restore, and from where. The leader decides once per generation: the newest checkpoint of which
// every rank has a checked copy on a node of the assignment or which is committed in storage. Nodes outside
// the assignment are not asked, even if their daemon still answers. Then every node brings its ranks' shards
// from the nearest source.
#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds inventory_timeout{4000};
constexpr milliseconds verify_timeout{60'000};  // checksums over all that the node holds
constexpr milliseconds decide_timeout{120'000};
constexpr milliseconds listing_timeout{5000};
constexpr milliseconds settle_timeout{2000};

using rank_slots = std::vector<std::vector<std::uint32_t>>;

bool covers(const rank_slots& holders) {
    return std::all_of(holders.begin(), holders.end(), [](const auto& h) { return !h.empty(); });
}

json keys_meta(const session_ptr& s) {
    json copies = json::array();
    for (const auto& c : s->copies) {
        if (!c->checked) continue;
        json one = json::object();
        put_key(one, c->key);
        one["rank"] = c->rank;
        copies.push_back(std::move(one));
    }
    return copies;
}

// Who says to hold which rank's part of which checkpoint.
std::map<copy_key, rank_slots> tabulate(const std::vector<std::optional<json>>& answers,
                                        std::uint32_t world) {
    std::map<copy_key, rank_slots> out;
    for (std::uint32_t slot = 0; slot < answers.size(); ++slot) {
        if (!answers[slot]) continue;
        const auto copies = json_fields(*answers[slot]).list("copies");
        if (!copies) continue;
        for (const auto& entry : *copies) {
            const auto key = get_key(entry);
            const auto rank = entry.number("rank", world - 1);
            if (!key || !rank) continue;
            auto& holders = out[*key];
            holders.resize(world);
            holders[*rank].push_back(slot);
        }
    }
    return out;
}

json choice_meta(const restore_choice& choice, const std::vector<std::uint32_t>& ranks) {
    json out = json::object();
    if (!choice.key) return out;
    put_key(out, *choice.key);
    if (choice.storage) out["storage"] = true;
    json holders = json::array();
    for (const auto rank : ranks)
        holders.push_back(rank < choice.holders.size() ? json(choice.holders[rank]) : json::array());
    out["holders"] = std::move(holders);
    return out;
}

}  // namespace

task<daemon::reply> daemon::on_inventory(session_ptr s) {
    const auto until = clock::now() + settle_timeout;
    const auto unchecked = [&] {
        return std::any_of(s->copies.begin(), s->copies.end(),
                           [](const auto& c) { return !c->checked && !c->dropped; });
    };
    while (unchecked() && clock::now() < until)
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(10)));
    json out;
    out["copies"] = keys_meta(s);
    if (s->choice) {
        json decided = json::object();
        if (s->choice->key) put_key(decided, *s->choice->key);
        out["decided"] = std::move(decided);
    }
    co_return out;
}

task<daemon::reply> daemon::on_verify(session_ptr s, json meta) {
    BANYAN_CO_TRY(const auto key, get_key(meta));
    json ranks = json::array();
    const auto before = s->copies;
    for (const auto& c : before) {
        if (c->key != key || !c->checked || c->dropped) continue;
        const auto work = [c]() -> result<bool> { return chunk_checksums(c->data()) == c->chunks; };
        const auto same = co_await compute_.run(s->request.uid, work);
        if (!same) co_return std::unexpected(same.error());
        if (*same && !c->dropped) {
            ranks.push_back(c->rank);
            continue;
        }
        ++s->bytes.damaged;
        // A user can cause this as often as he likes.
        std::uint64_t held_back = 0;
        if (limiter_.pass(fmt::format("damaged {}", s->job()), clock::now(), held_back))
            spdlog::error(
                "job {}: rank {}'s copy of step {} in this node's memory is damaged and will not be used "
                "({} more since)",
                s->job(), c->rank, key.step, held_back);
        s->drop_copy(c);
    }
    json out;
    out["ranks"] = std::move(ranks);
    co_return out;
}

task<std::vector<std::optional<json>>> daemon::ask_all(session_ptr s, peer_message type, json meta,
                                                       milliseconds timeout) {
    struct gathering {
        std::vector<std::optional<json>> answers;
        std::size_t open = 0;
    };
    auto all = std::make_shared<gathering>();
    all->answers.resize(s->request.nodes.size());
    for (std::size_t i = 0; i < s->request.nodes.size(); ++i) {
        if (s->request.nodes[i].name == s->self()) continue;
        ++all->open;
        spawn([](daemon* self, session_ptr who, std::shared_ptr<gathering> into, std::size_t at,
                 session_node to, peer_message what, json asked, milliseconds within) -> task<void> {
            auto answer = co_await self->link_to(to, false)->call(what, std::move(asked), within);
            if (answer) into->answers[at] = std::move(*answer);
            --into->open;
            who->changed->notify();
        }(this, s, all, i, s->request.nodes[i], type, meta, timeout));
    }
    if (s->slot) {
        auto own = co_await answer_peer(static_cast<std::uint16_t>(type), s, std::move(meta));
        if (own) all->answers[*s->slot] = std::move(*own);
    }
    while (all->open != 0) co_await s->changed->wait(clock::now() + milliseconds(100));
    co_return std::move(all->answers);
}

// Committed steps in storage; of this job with their generation, of others as the oldest of all.
task<std::vector<copy_key>> daemon::storage_steps(session_ptr s, std::optional<copy_key> newer_than) {
    using answer = result<std::vector<copy_key>>;
    if (s->request.dir.empty()) co_return std::vector<copy_key>();
    auto found = std::make_shared<std::optional<answer>>();
    spawn([](daemon* self, session_ptr who, std::optional<copy_key> bound,
             std::shared_ptr<std::optional<answer>> into) -> task<void> {
        const auto user = who->user;
        const auto dir = who->request.dir;
        const auto world = who->request.world;
        const auto job = who->job();
        const auto work = [user, dir, world, job, bound]() -> answer {
            std::vector<copy_key> steps;
            BANYAN_TRY(const auto listed, list_steps(user, dir));
            for (const auto step : listed) {
                // What memory has whole and newer needs no look at the manifest.
                if (bound && step <= bound->step) continue;
                const auto m = scan_step(user, dir, step, world);
                if (m) steps.push_back({m->job == job ? m->generation : 0, m->step});
            }
            return steps;
        };
        *into = co_await self->storage_.run(user.uid, work);
        who->changed->notify();
    }(this, s, newer_than, found));
    const auto until = clock::now() + listing_timeout;
    while (!found->has_value() && clock::now() < until) co_await s->changed->wait(until);
    if (found->has_value() && **found) co_return std::move(***found);
    const auto why = found->has_value() ? (*found)->error().text() : std::string("it does not answer");
    warn(s, s->request.dir,
         fmt::format("the checkpoint directory {}: {}; only memory is searched", s->request.dir, why));
    co_return std::vector<copy_key>();
}

// The slots whose nodes have a copy of each rank's part that stands up to its checksums now.
task<std::vector<std::vector<std::uint32_t>>> daemon::verified_holders(session_ptr s, copy_key key,
                                                                       bool any) {
    rank_slots checked(s->request.world);
    if (!any) co_return checked;
    json which = header(s);
    put_key(which, key);
    const auto proofs = co_await ask_all(s, peer_message::verify, std::move(which), verify_timeout);
    for (std::uint32_t slot = 0; slot < proofs.size(); ++slot) {
        if (!proofs[slot]) continue;
        const auto ranks = json_fields(*proofs[slot]).numbers("ranks", max_world);
        if (!ranks) continue;
        for (const auto r : *ranks)
            if (r < checked.size()) checked[r].push_back(slot);
    }
    co_return checked;
}

task<result<restore_choice>> daemon::lead(session_ptr s) {
    const auto held = co_await s->choice_lock->acquire();
    if (s->choice && (!s->choice->key || !s->choice->holders.empty() || s->choice->storage))
        co_return *s->choice;
    const auto generation = s->generation;
    json asked = header(s);
    const auto answers = co_await ask_all(s, peer_message::inventory, asked, inventory_timeout);
    auto table = tabulate(answers, s->request.world);
    std::optional<json> adopted;
    for (const auto& a : answers)
        if (a && a->contains("decided")) adopted = (*a)["decided"];
    // A choice that a commit of this generation has overtaken counts no more, though a node may not know it
    // yet.
    if (adopted && s->committed && s->committed->generation == generation) {
        const auto key = get_key(*adopted);
        if (!key || *key < *s->committed) adopted.reset();
    }
    if (adopted && !adopted->contains("step")) {
        s->choice = restore_choice{};
        co_return *s->choice;
    }
    std::optional<copy_key> must;
    if (adopted)
        if (auto key = get_key(*adopted)) must = *key;
    std::optional<copy_key> whole;
    for (const auto& [key, holders] : table)
        if (covers(holders)) whole = key;
    restore_choice choice;
    // First with a look only at what storage has newer than memory; when memory turns out damaged, at all of
    // it.
    for (int pass = 0; pass < 2 && !choice.key; ++pass) {
        const bool all = pass == 1 || must || !whole;
        const auto steps = co_await storage_steps(s, all ? std::nullopt : whole);
        std::map<copy_key, bool> candidates;  // key -> in storage
        for (const auto& [key, holders] : table) candidates[key] = false;
        for (const auto& key : steps) candidates[key] = true;
        for (auto it = candidates.rbegin(); it != candidates.rend() && !choice.key; ++it) {
            const auto key = it->first;
            const bool in_storage = it->second;
            if (must && key != *must) continue;
            if (!in_storage && !covers(table[key])) continue;
            auto checked = co_await verified_holders(s, key, table.contains(key));
            if (in_storage || covers(checked)) {
                choice.key = key;
                choice.storage = in_storage;
                choice.holders = std::move(checked);
            } else if (!all) {
                break;
            }
        }
        if (all) break;
    }
    if (must && !choice.key)
        co_return fail(errc::unavailable,
                       fmt::format("step {} was chosen, but is no longer whole", must->step));
    if (s->generation != generation) co_return fail(errc::conflict, "a newer step of the job has begun");
    s->choice = choice;
    json word = header(s);
    if (choice.key) put_key(word, *choice.key);
    co_await ask_all(s, peer_message::decided, std::move(word), inventory_timeout);
    // ask_all told ourselves too, and what is told there carries no holders.
    s->choice = choice;
    std::uint64_t held_back = 0;
    if (!limiter_.pass(fmt::format("restore {} {:x}", s->job(), generation), clock::now(), held_back))
        co_return choice;
    if (choice.key)
        spdlog::info("job {}: restores step {} of generation {:x} from {}", s->job(), choice.key->step,
                     choice.key->generation, covers(choice.holders) ? "memory" : "storage");
    else
        spdlog::info("job {}: there is no complete checkpoint", s->job());
    co_return choice;
}

void daemon::on_decided(const session_ptr& s, const std::optional<copy_key>& key) {
    if (!s->choice || s->choice->key != key) {
        s->choice = restore_choice{};
        s->choice->key = key;
    }
    if (!key) return;
    s->committed = key;
    s->committed_replicated = false;
    s->votes.clear();
    if (s->request.flush != 0) s->flush_epoch = key->step / s->request.flush;
    s->release(true);
    s->publish();
    notify(s);
}

task<daemon::reply> daemon::on_decide(session_ptr s, json meta) {
    BANYAN_CO_TRY(const auto ranks, json_fields(meta).numbers("ranks", max_world));
    // Whoever asks us found nobody in a lower slot; we look for ourselves before we lead.
    BANYAN_CO_TRY(const auto choice, co_await decide(s));
    co_return choice_meta(choice, ranks);
}

task<result<restore_choice>> daemon::decide(session_ptr s) {
    json asked = header(s);
    const auto ranks = s->own_ranks();
    asked["ranks"] = ranks;
    auto answer = co_await ask_leader(s, peer_message::decide, std::move(asked), decide_timeout);
    if (!answer) co_return co_await lead(s);
    if (!*answer) co_return std::unexpected(answer->error());
    const auto& told = **answer;
    restore_choice choice;
    if (!told.contains("step")) co_return choice;
    BANYAN_CO_TRY(choice.key, get_key(told));
    choice.storage = told.contains("storage");
    choice.holders.resize(s->request.world);
    const auto it = told.find("holders");
    if (it == told.end() || !it->is_array() || it->size() != ranks.size())
        co_return fail(errc::invalid_input, "the leader's answer has no holders");
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        json one;
        one["slots"] = (*it)[i];
        BANYAN_CO_TRY(choice.holders[ranks[i]], json_fields(one).numbers("slots", max_world));
    }
    co_return choice;
}

task<result<std::uint64_t>> daemon::fill(session_ptr s, std::uint32_t rank, restore_choice choice,
                                         std::span<std::byte> into, std::vector<std::uint32_t>* chunks,
                                         std::string* source) {
    const auto key = *choice.key;
    if (const auto c = s->find_copy(rank, key); c && c->bytes <= into.size()) {
        const auto work = [c, into]() -> result<bool> {
            std::memcpy(into.data(), c->data().data(), c->bytes);
            return chunk_checksums(into.first(c->bytes)) == c->chunks;
        };
        const auto intact = co_await compute_.run(s->request.uid, work);
        if (intact && *intact) {
            *chunks = c->chunks;
            *source = "local";
            co_return c->bytes;
        }
    }
    const auto holders = rank < choice.holders.size() ? choice.holders[rank] : std::vector<std::uint32_t>();
    for (int attempt = 0; attempt < 2; ++attempt) {
        for (const auto slot : holders) {
            if (slot >= s->request.nodes.size() || s->request.nodes[slot].name == s->self()) continue;
            json meta = header(s);
            put_key(meta, key);
            meta["rank"] = rank;
            auto got = co_await link_to(s->request.nodes[slot], true)->get(std::move(meta), into, chunks);
            if (!got) {
                std::uint64_t held_back = 0;
                if (limiter_.pass(fmt::format("fetch {}", s->job()), clock::now(), held_back))
                    spdlog::warn("job {}: rank {}'s shard from {}: {} ({} more since)", s->job(), rank,
                                 s->request.nodes[slot].name, got.error().text(), held_back);
                continue;
            }
            const auto bytes = *got;
            const auto wanted = *chunks;
            const auto work = [into, bytes, wanted]() -> result<bool> {
                return chunk_checksums(into.first(bytes)) == wanted;
            };
            const auto intact = co_await compute_.run(s->request.uid, work);
            if (!intact || !*intact) {
                ++s->bytes.damaged;
                continue;
            }
            s->bytes.peer_received += bytes;
            *source = "peer";
            co_return bytes;
        }
    }
    if (!choice.storage)
        co_return fail(errc::unavailable, fmt::format("rank {}'s shard of step {} is lost", rank, key.step));
    const auto user = s->user;
    const auto dir = s->request.dir;
    const auto world = s->request.world;
    const auto work = [user, dir, key, rank, world, into]() -> result<shard_file> {
        shard_file mine;
        const auto keep = [&](const shard_file& f) {
            if (f.rank == rank) mine = f;
        };
        BANYAN_CHECK(scan_step(user, dir, key.step, world, keep));
        BANYAN_CHECK(read_shard(user, dir, key.step, mine, into));
        return mine;
    };
    auto read = co_await storage_.run(user.uid, work);
    if (!read) co_return std::unexpected(read.error());
    s->bytes.storage_read += read->bytes;
    *chunks = read->chunks;
    *source = "storage";
    co_return read->bytes;
}

task<result<copy_ptr>> daemon::bring(session_ptr s, std::uint32_t rank, restore_choice choice,
                                     std::string* source) {
    const auto key = *choice.key;
    auto& r = s->ranks[rank];
    if (const auto have = s->find_copy(rank, key); have && have->buffer >= 0 && have->memory == r.memory) {
        *source = "local";
        s->bytes.memory_restored += have->bytes;
        co_return have;
    }
    // The process waits for our answer, so every buffer is ours; what is in them is not the chosen step.
    const auto memory = r.memory;
    const auto buffer_bytes = r.buffer_bytes;
    auto& header = *reinterpret_cast<rank_memory_header*>(memory->data());
    int buffer = -1;
    for (std::size_t i = 0; i < r.buffers && buffer < 0; ++i) {
        const bool pinned = std::any_of(s->copies.begin(), s->copies.end(), [&](const auto& c) {
            return c->memory == memory && c->buffer == static_cast<int>(i) && c->pinned;
        });
        if (!pinned) buffer = static_cast<int>(i);
    }
    if (buffer < 0) co_return fail(errc::exhausted, "every buffer is being flushed");
    const auto before = s->copies;
    for (const auto& c : before)
        if (c->memory == memory && c->buffer == buffer) s->drop_copy(c);
    auto& head = header.buffer[static_cast<std::size_t>(buffer)];
    begin_write(head);
    auto copy = std::make_shared<shard_copy>();
    copy->offset = buffer_offset(static_cast<std::size_t>(buffer), buffer_bytes);
    BANYAN_CO_TRY(copy->bytes, co_await fill(s, rank, choice, memory->part(copy->offset, buffer_bytes),
                                             &copy->chunks, source));
    copy->sequence = end_write(head, key.step, key.generation, copy->bytes);
    copy->rank = rank;
    copy->key = key;
    copy->memory = memory;
    copy->buffer = buffer;
    copy->checked = true;
    if (*source == "local") s->bytes.memory_restored += copy->bytes;
    s->copies.push_back(copy);
    co_return copy;
}

task<daemon::reply> daemon::on_restore(client_ptr client, json meta) {
    const auto s = client->attached;
    if (!s) co_return fail(errc::conflict, "no rank is attached on this connection");
    if (client->generation != s->generation)
        co_return fail(errc::conflict, "a newer step of the job has begun: this process is of an older one");
    BANYAN_CO_TRY(const auto choice, co_await decide(s));
    on_decided(s, choice.key);
    json out = json::object();
    out["source"] = "none";
    if (!choice.key) co_return out;
    out["step"] = choice.key->step;
    if (meta.contains("test")) co_return out;
    std::string source;
    BANYAN_CO_TRY(const auto copy, co_await bring(s, client->rank, choice, &source));
    if (s->closed || client->generation != s->generation) co_return fail(errc::conflict, "the session ended");
    out["source"] = source;
    out["buffer"] = copy->buffer;
    out["bytes"] = copy->bytes;
    // Whatever lost its second copy gets a new one; what the buddy still has is not sent again.
    spawn([](daemon* self, session_ptr who, copy_ptr what) -> task<void> {
        ++who->pending;
        co_await self->replicate(who, what);
        --who->pending;
        who->changed->notify();
    }(this, s, copy));
    co_return out;
}

}  // namespace banyan::ckpt
