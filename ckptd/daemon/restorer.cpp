// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/restorer.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "ckptd/daemon/holes.hpp"
#include "ckptd/daemon/in_the_making.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/store/image_origin.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds ask_again{500};  // a holder that does not answer
constexpr int storage_attempts = 3;
constexpr auto about_holders = "former nodes";

/// What storage has for a rank. Nothing to bring where no rank has its own shard, nor one of a rank with the
/// same state.
struct stored {
    std::uint32_t saved_by = 0;  ///< ranks, where that is so
    shard_file file;
    std::vector<shard_file> share;  ///< of the files, which are looked at all the same
};

result<stored> stored_for(const storage_user& user, const std::string& dir, agreement::held what,
                          std::uint32_t world, std::uint32_t group) {
    stored mine;
    auto rank = what.rank;
    const auto keep = [&](const shard_file& f) {
        if (f.rank == rank) mine.file = f;
    };
    BANYAN_TRY(const auto of, scan_step(user, dir, what.key.step, 0, keep));
    const bool has_equals = group != 0 && of.world % group == 0;
    if (of.world != world && !has_equals) {
        mine.saved_by = of.world;
        const auto divide = [&](const shard_file& f) {
            if (f.rank % world == what.rank) mine.share.push_back(f);
        };
        BANYAN_CHECK(scan_step(user, dir, what.key.step, of.world, divide));
        return mine;
    }
    if (rank >= of.world) {
        rank %= of.world;
        BANYAN_CHECK(scan_step(user, dir, what.key.step, of.world, keep));
    }
    if (!mine.file.pieces_in) return mine;
    mine.saved_by = of.world;
    mine.share = {mine.file};
    return mine;
}

/// `gives` hears of each chunk that storage has given, counted through all files.
result<void> check_all(const storage_user& user, const std::string& dir, std::uint64_t step,
                       const std::vector<shard_file>& files, const std::function<void(std::size_t)>& gives) {
    std::size_t chunks = 0;
    for (const auto& f : files)
        BANYAN_CHECK(for_each_chunk(user, dir, step, f, [&](std::span<const std::byte>) {
            gives(chunks++);
            return result<void>{};
        }));
    return {};
}

}  // namespace

// A copy on this node, which becomes the rank's own if it was kept for another node. Not one that a flush
// alone still needs: it goes with the flush.
task<bool> restorer::take_local(session_ptr s, agreement::held what) {
    for (;;) {
        const auto c = s->find_copy(what.rank, what.key);
        if (!c || c->overtaken) co_return false;
        const auto work = [c, data = c->data(), keep = c->memory]() -> result<bool> {
            return chunk_checksums(data) == c->chunks;
        };
        const auto same = co_await core_.compute.run(s->request.uid, work);
        if (s->closed) co_return false;
        if (!same) co_await s->changed->wait(clock::now() + ask_again);  // not looked at is not damaged
        if (give_up_holed(users_, s, what.rank) || !same || c->dropped || c->overtaken) continue;
        if (!*same) {
            users_.note_damage(s, what.rank, what.key);
            s->lose_copy(c);
            continue;
        }
        if (!c->own) {
            s->agreed->lose(c->number);
            c->number = core_.next_copy++;
            c->own = true;
            s->agreed->add({c->number, what, true, true, {}});
        }
        co_return true;
    }
}

task<bool> restorer::take_local_instead(session_ptr s, agreement::held what, std::uint32_t as) {
    const auto from = s->find_copy(what.rank, what.key);
    if (!from) co_return false;
    const agreement::held own{what.key, as};
    auto into = co_await room_for(s, own, from->bytes);
    if (!into) {
        note_hindrance(s, hindrance::of::memory, into.error().text());
        co_return false;
    }
    s->hindered.here.reset();
    const auto to = *into;
    // They may come to lie in other memory meanwhile.
    const auto work = [from, data = from->data(), keep = from->memory, room = to->data(),
                       into = to->memory]() -> result<bool> {
        return copy_with_checksums(room, data) == from->chunks;
    };
    const auto same = co_await core_.compute.run(s->request.uid, work);
    const bool holed = to->memory->is_holed() || from->memory->is_holed();
    if (s->closed || !same || !*same || holed) {
        give_back(s, to);
        give_up_holed(users_, s, as);
        give_up_holed(users_, s, what.rank);
        if (!s->closed && same && !holed && !from->dropped && from->checked) {
            users_.note_damage(s, what.rank, what.key);
            s->lose_copy(from);
        }
        co_return false;
    }
    to->chunks = from->chunks;
    settle(s, to, "local");
    co_return true;
}

task<bool> restorer::may_begin_with(session_ptr s, std::uint32_t rank, copy_key key,
                                    agreement::ballot number) {
    if (s->request.group == 0 || s->ranks[rank].saved_by != 0) co_return true;
    const auto copy = s->find_copy(rank, key);
    if (!copy) co_return false;
    const auto of = read_origin(copy->data());
    // With another number of ranks the process says what it can take, and may read other shards besides.
    if (of && (of->rank == rank || of->world != s->request.world)) co_return true;
    const auto work = [data = copy->data(), keep = copy->memory] { return why_not_in_parts(data); };
    result<std::optional<std::string>> without = std::nullopt;
    if (!of) without = std::unexpected(of.error());
    for (bool again = of.has_value(); again && !s->closed && s->bringing == number;) {
        without = co_await core_.compute.run(s->request.uid, work);
        again = !without && without.error().code == errc::exhausted;  // not looked at
        if (again) co_await s->changed->wait(clock::now() + ask_again);
    }
    if (s->closed || s->bringing != number) co_return false;
    if (without && !*without) co_return true;
    const auto why = without ? **without : without.error().what;
    users_.warn(
        s, fmt::format("step {}", key.step),
        without
            ? fmt::format("step {} cannot be restored with {} ranks: rank {} would begin with what rank {} "
                          "of {} has saved, and {}",
                          key.step, s->request.world, rank, of->rank, of->world, why)
            : fmt::format("step {}: rank {}'s shard cannot be read: {}", key.step, rank, why));
    // Under this rank's name nobody is to find it.
    if ((!without || of->rank != rank) && !copy->dropped) s->lose_copy(copy);
    co_return false;
}

// A free buffer of the rank, where its process cannot come between; else memory of its own.
task<result<copy_ptr>> restorer::room_for(session_ptr s, agreement::held what, std::uint64_t bytes) {
    auto copy = std::make_shared<shard_copy>();
    copy->rank = what.rank;
    copy->key = what.key;
    copy->bytes = bytes;
    // One that is not what the ranks begin from in the end is offered to nobody, and holds up no later one.
    copy->handled = true;
    give_up_holed(users_, s, what.rank);
    const auto known = s->ranks.find(what.rank);
    if (known != s->ranks.end() && known->second.buffer_bytes >= bytes)
        if (const auto buffer = s->spare_buffer(known->second)) {
            auto& r = known->second;
            copy->memory = r.memory;
            copy->offset = buffer_offset(*buffer, r.buffer_bytes);
            copy->buffer = static_cast<int>(*buffer);
            begin_fill(r.header().buffer[*buffer]);
            if (!give_up_holed(users_, s, what.rank)) {
                s->copies.push_back(copy);  // unchecked: nobody takes the buffer
                co_return copy;
            }
            copy->buffer = -1;
            copy->offset = 0;
        }
    const auto size = round_to_page(bytes);
    const auto limit = core_.config.job_limit(), used = core_.memory_of_job(*s);
    if (size > limit || used > limit - size)
        co_return fail(
            errc::exhausted,
            fmt::format("rank {}'s shard of {} and what job {} has on node {} are more than the {} "
                        "of a job there",
                        what.rank, format_bytes(size), s->job(), core_.config.node, format_bytes(limit)),
            core_.config.to_raise_job_limit());
    const auto most = limit - used;
    auto budget = core_.budget;
    const in_the_making counted(s, shard_memory::bytes_to_make(*budget, {}, bytes, most));
    const auto name = fmt::format("banyan-shard-{}-{}", s->job(), what.rank);
    const auto work = [budget, name, bytes, most] {
        return shard_memory::make(budget, name, {}, bytes, most);
    };
    BANYAN_CO_TRY(copy->memory, co_await core_.compute.run(s->request.uid, work));
    s->copies.push_back(copy);
    co_return copy;
}

void restorer::settle(const session_ptr& s, const copy_ptr& c, const char* source) {
    if (c->buffer >= 0) {
        auto& header = *reinterpret_cast<rank_memory_header*>(c->memory->data());
        c->sequence = end_fill(header.buffer[static_cast<std::size_t>(c->buffer)], c->key.step,
                               c->key.generation, c->bytes);
    }
    c->checked = true;
    c->number = core_.next_copy++;
    s->agreed->add({c->number, {c->key, c->rank}, true, true, {}});
    s->ranks[c->rank].source = source;
}

void restorer::give_back(const session_ptr& s, const copy_ptr& c) {
    c->dropped = true;
    if (c->buffer >= 0) {
        auto& header = *reinterpret_cast<rank_memory_header*>(c->memory->data());
        auto& b = header.buffer[static_cast<std::size_t>(c->buffer)];
        b.released.store(b.sequence.load());
    }
    std::erase(s->copies, c);
}

task<restorer::fetched> restorer::take_from(session_ptr s, agreement::held what, std::uint32_t as,
                                            session_node holder) {
    // Outside of the assignment it is asked for this and no more.
    const auto to = s->slot_of(holder.name) ? peers_.link_to(holder, true) : peers_.new_link(holder);
    json meta = header_of(*s);
    put_key(meta, what.key);
    meta["rank"] = what.rank;
    meta["uid"] = s->request.uid;
    copy_ptr copy;
    std::vector<std::uint32_t> chunks;
    const link::room into = [&](std::uint64_t bytes) -> task<result<std::span<std::byte>>> {
        const agreement::held own{what.key, as};
        BANYAN_CO_TRY(copy, co_await room_for(s, own, bytes));
        s->hindered.here.reset();  // and the peer has it
        co_return copy->data();
    };
    const auto got = co_await to->get(std::move(meta), into, &chunks);
    if (!got) {
        if (copy) give_back(s, copy);
        if (copy && got.error().code == errc::conflict) ++s->bytes.damaged_on_arrival;
        std::uint64_t held_back = 0;
        if (s->warnings.lines.pass("a fetch", clock::now(), held_back))
            spdlog::warn("job {}: rank {}'s shard from {}: {} ({} more since)", s->job(), what.rank,
                         holder.name, got.error().text(), held_back);
        // No room here is no word on the shard either.
        if (got.error().code == errc::exhausted) note_hindrance(s, hindrance::of::memory, got.error().text());
        if (got.error().code == errc::unavailable) co_return fetched::silent;
        co_return got.error().code == errc::exhausted ? fetched::no_room : fetched::absent;
    }
    copy->chunks = chunks;
    if (s->closed) {
        give_back(s, copy);
        co_return fetched::absent;
    }
    // The room was bad, which is no word on the shard: the next one is not the rank's.
    if (copy->memory->is_holed()) {
        give_back(s, copy);
        give_up_holed(users_, s, as);
        co_return fetched::no_room;
    }
    s->bytes.peer_received += copy->bytes;
    settle(s, copy, "peer");
    co_return fetched::done;
}

// Damaged or gone is what has been seen to be so, three times. No room here, or storage that does not answer
// or does not let us in, says nothing of what is there.
task<restorer::fetched> restorer::take_from_storage(session_ptr s, agreement::held what, std::string* why) {
    const auto user = s->user;
    const auto dir = s->request.dir;
    const auto world = s->request.world, group = s->request.group;
    const auto reads = fmt::format("step {} is read from {}, which gives nothing", what.key.step, dir);
    std::string damage;
    for (int attempt = 0; attempt < storage_attempts; ++attempt) {
        if (!s->hindered.here) s->hindered.note(hindrance::of::answer, reads);
        const auto look = [=] { return stored_for(user, dir, what, world, group); };
        const auto found = co_await core_.storage.run(user.uid, look);
        result<void> done = found ? result<void>{} : std::unexpected(found.error());
        const auto* file = found && found->saved_by == 0 ? &found->file : nullptr;
        // A large shard may take longer than a beginning is waited for that nothing hinders.
        const auto gives = [s, rank = what.rank, reads, &io = core_.io](std::size_t chunk) {
            asio::post(io, [s, rank, chunk, reads] { s->hindered.gone_on(rank, chunk, reads); });
        };
        // The ranks read it by themselves: what is damaged is found before any of them goes.
        if (found && found->saved_by != 0) {
            const auto check = [=, share = found->share] {
                return check_all(user, dir, what.key.step, share, gives);
            };
            done = co_await core_.storage.run(user.uid, check);
            if (done && !s->closed) {
                s->ranks[what.rank].saved_by = found->saved_by;
                s->ranks[what.rank].source = "storage";
                co_return fetched::done;
            }
            if (!done && done.error().code == errc::invalid_input) damage = done.error().what;
        }
        if (file) {
            auto copy = co_await room_for(s, what, file->bytes);
            if (!copy) {
                note_hindrance(s, hindrance::of::memory, copy.error().text());
                co_return fetched::no_room;
            }
            s->hindered.there_is_room();
            const auto read = [=, into = (*copy)->data(), keep = (*copy)->memory, f = *file] {
                return read_shard(user, dir, what.key.step, f, into, gives);
            };
            done = co_await core_.storage.run(user.uid, read);
            if ((*copy)->memory->is_holed()) {
                give_back(s, *copy);
                give_up_holed(users_, s, what.rank);
                co_return fetched::no_room;
            }
            if (done && !s->closed) {
                (*copy)->chunks = file->chunks;
                s->bytes.storage_read += (*copy)->bytes;
                settle(s, *copy, "storage");
                co_return fetched::done;
            }
            if (!done && done.error().code == errc::invalid_input) damage = done.error().what;
            give_back(s, *copy);
        }
        if (s->closed) co_return fetched::absent;
        const auto seen = [](errc c) {
            return c == errc::invalid_input || c == errc::not_found || c == errc::conflict;
        };
        if (!done && !seen(done.error().code)) {
            note_hindrance(s, hindrance::of::storage, done.error().text());
            co_return fetched::silent;
        }
        *why = done.error().text();
        co_await s->changed->wait(clock::now() + ask_again);
    }
    // Read again and again: what one read gave wrong may be memory's doing.
    if (!damage.empty()) users_.note_stored_damage(s, what.rank, damage);
    co_return fetched::absent;
}

void restorer::note_hindrance(const session_ptr& s, hindrance::of what, const std::string& why) {
    s->hindered.note(what, why);
    users_.warn(s,
                what == hindrance::of::memory   ? "memory"
                : what == hindrance::of::holder ? about_holders
                                                : s->request.dir,
                why);
}

// The job goes back behind a step that was acknowledged: never without a word.
void restorer::tell_of_loss(const session_ptr& s, agreement::held what,
                            const std::vector<session_node>& holders) {
    std::vector<std::string> names;
    for (const auto& h : holders) names.push_back(h.name);
    users_.warn(s, fmt::format("step {}", what.key.step),
                fmt::format("step {} cannot be restored, an older one is looked for: rank {}'s shard was on "
                            "{}, which {} it any more",
                            what.key.step, what.rank, names.empty() ? "no node" : compress_hostlist(names),
                            names.size() > 1 ? "do not give" : "does not give"));
}

task<bool> restorer::bring(session_ptr s, std::uint32_t rank, agreement::choice from,
                           agreement::ballot number) {
    const auto instead = from.instead.find(rank);
    const bool is_own = instead == from.instead.end();
    const agreement::held own{*from.key, rank}, what{*from.key, is_own ? rank : instead->second};
    const auto wanted = [&] { return !s->closed && s->bringing == number; };
    std::string unusable;  // why, when storage has it and it is damaged or gone there
    std::vector<session_node> holders;
    if (rank < from.holders.size())
        for (const auto slot : from.holders[rank])
            if (auto h = holder_of(*s, from, slot)) holders.push_back(std::move(*h));
    while (wanted()) {
        // What was brought by an attempt before this one is there under the rank's own name.
        bool here = co_await take_local(s, own);
        if (!here && !is_own) here = co_await take_local_instead(s, what, rank);
        if (here) {
            if (s->ranks[rank].source.empty()) s->ranks[rank].source = "local";
            co_return true;
        }
        // What is still here has not been found damaged: it had no room, or was not looked at.
        bool may_come = !is_own && s->find_copy(what.rank, what.key) != nullptr;
        std::vector<std::string> silent;
        for (const auto& holder : holders) {
            if (!wanted() || holder.name == s->self()) continue;
            const auto taken = co_await take_from(s, what, rank, holder);
            if (taken == fetched::done) co_return true;
            may_come = may_come || taken != fetched::absent;
            if (taken == fetched::silent && !s->slot_of(holder.name)) silent.push_back(holder.name);
        }
        if (from.storage && unusable.empty() && wanted()) {
            const auto read = co_await take_from_storage(s, own, &unusable);
            if (read == fetched::done) co_return true;
            if (read != fetched::absent) {
                unusable.clear();
                may_come = true;
            }
        }
        // A holder that does not answer says nothing about what it holds. Of one that has no slot nobody else
        // says that it is waited for.
        if (wanted() && !silent.empty())
            note_hindrance(s, hindrance::of::holder,
                           fmt::format("rank {}'s shard of step {} is on {}, and no answer comes from there",
                                       what.rank, what.key.step, compress_hostlist(silent)));
        if (!may_come) {
            if (wanted() && from.storage)
                users_.warn(s, fmt::format("step {}", own.key.step),
                            fmt::format("step {} in {} cannot be restored, an older one is looked for: {}",
                                        own.key.step, s->request.dir, unusable));
            else if (wanted())
                tell_of_loss(s, what, holders);
            co_return false;
        }
        co_await s->changed->wait(clock::now() + ask_again);
    }
    co_return false;
}

task<void> restorer::bring_all(session_ptr s, agreement::prepare what) {
    const auto number = what.number;
    s->bringing = number;
    // An attempt that was overtaken ends first: it may hold buffers. What hindered it is not this one's.
    s->hindered.here.reset();
    const auto held = co_await s->bring_lock->acquire();
    if (s->closed || s->bringing != number) co_return;
    s->hindered.here.reset();
    s->storage.chosen = what.what.storage ? what.what.key : std::nullopt;
    std::vector<std::uint32_t> failed;
    const auto ranks = s->own_ranks();
    for (const auto rank : ranks) {
        s->ranks[rank].source.clear();
        s->ranks[rank].saved_by = 0;
        if (!what.what.key) continue;
        const bool brought = co_await bring(s, rank, what.what, number);
        if (s->closed || s->bringing != number) co_return;
        s->hindered.here.reset();
        const bool may_begin = brought && co_await may_begin_with(s, rank, *what.what.key, number);
        if (s->closed || s->bringing != number) co_return;
        if (may_begin) continue;
        failed.push_back(rank);
        break;  // one is enough for another step
    }
    s->agreed->brought(number, std::move(failed));
}

}  // namespace banyan::ckpt
