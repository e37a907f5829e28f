// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/protector.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/holes.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/store/safetensors.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds busy_timeout{5000};
constexpr milliseconds look_again{20};
constexpr milliseconds look_at_buddy{100};
constexpr std::uint64_t summed_at_once = 64 * 1024;  // takes less than to change threads
constexpr auto about_checksums = "checksums";

void show_whether_stalled(const session_ptr& s) {
    const bool now = s->waits_for_others(longest_wait);
    if (std::exchange(s->stalled, now) != now) s->publish();
}

// Whether the buddy has to make memory for it: it keeps so many copies of a rank, and makes each when it
// comes.
bool needs_memory(const session_ptr& s, const copy_ptr& c, const std::string& buddy) {
    const auto r = s->ranks.find(c->rank);
    if (r == s->ranks.end()) return true;
    const auto& taken = r->second.at_buddy;
    return taken.node != buddy || taken.count < replicas_per_rank || taken.largest < c->bytes;
}

void note_taken(const session_ptr& s, const copy_ptr& c, const std::string& buddy) {
    const auto r = s->ranks.find(c->rank);
    if (r == s->ranks.end()) return;
    auto& taken = r->second.at_buddy;
    if (taken.node != buddy || taken.largest < c->bytes) taken = {buddy, 0, c->bytes};
    ++taken.count;
}

task<void> probe_silent(std::shared_ptr<link> silent, std::function<bool()> needed) {
    co_await silent->probe(std::move(needed));
}

}  // namespace

void protector::note_sealed(const session_ptr& s, std::uint32_t rank, std::size_t buffer) {
    const auto it = s->ranks.find(rank);
    if (it == s->ranks.end() || !it->second.memory || buffer >= it->second.buffers) return;
    auto& r = it->second;
    const auto view = read_buffer(r.header().buffer[buffer]);
    if (give_up_holed(users_, s, rank)) return;
    // The header is the user's to write: nothing in it is used before it is in range.
    if (!view || view->bytes == 0 || view->bytes > r.buffer_bytes || view->step > max_step) return;
    // One at a time: whoever seals a buffer over and over gets one checksum after the other, no queue of
    // them.
    if (s->in_checksum.contains({rank, buffer})) return;
    if (r.header().buffer[buffer].released.load() == view->sequence) return;
    const auto before = s->copy_in(r, buffer);
    if (before && before->sequence == view->sequence) return;
    // A copy of an earlier life of this buffer was overwritten against the rules: it is gone.
    if (before) {
        s->agreed->lose(before->number);
        before->dropped = true;
        std::erase(s->copies, before);
    }
    // Of a generation that is over, or not newer than what the rank has saved: it leads to nothing.
    const auto newer = [&](const auto& c) {
        return c->rank == rank && c->own && c->key.generation == view->generation &&
               c->key.step >= view->step;
    };
    if (view->generation != s->generation || std::any_of(s->copies.begin(), s->copies.end(), newer)) {
        ++s->bytes.refused;
        s->free_buffer(r, buffer, view->sequence);
        return;
    }
    auto c = std::make_shared<shard_copy>();
    c->number = core_.next_copy++;
    c->rank = rank;
    c->key = {view->generation, view->step};
    c->bytes = view->bytes;
    c->memory = r.memory;
    c->offset = buffer_offset(buffer, r.buffer_bytes);
    c->buffer = static_cast<int>(buffer);
    c->sequence = view->sequence;
    s->copies.push_back(c);
    s->agreed->add({c->number, {c->key, rank}, true, false, {}});
    r.saved = true;
    r.newest = c->key;
    r.began = r.process;
    ++s->bytes.seals;
    ++s->pending;
    s->in_checksum.insert({rank, buffer});
    core_.spawn(secure(s, c, buffer));
}

void protector::scan_buffers(const session_ptr& s, std::uint32_t rank) {
    const auto it = s->ranks.find(rank);
    if (it == s->ranks.end() || !it->second.memory) return;
    std::vector<std::pair<std::uint64_t, std::size_t>> sealed;
    for (std::size_t i = 0; i < it->second.buffers; ++i)
        if (const auto view = read_buffer(it->second.header().buffer[i])) sealed.emplace_back(view->step, i);
    if (give_up_holed(users_, s, rank)) return;
    std::sort(sealed.begin(), sealed.end());
    for (const auto& [step, buffer] : sealed) note_sealed(s, rank, buffer);
}

task<bool> protector::checksum(session_ptr s, copy_ptr c) {
    const auto before = c->sequence;
    const auto work = [c]() -> result<std::vector<std::uint32_t>> {
        if (c->dropped) return fail(errc::conflict, "dropped meanwhile");
        auto sums = chunk_checksums(c->data());
        // They would fit the zeros that lie there now.
        if (c->memory->is_holed()) return fail(errc::invalid_input, "holes in its memory");
        return sums;
    };
    result<std::vector<std::uint32_t>> sums;
    if (c->bytes <= summed_at_once)
        sums = work();
    else
        sums = co_await core_.compute.run(s->request.uid, work);
    if (!sums) {
        if (sums.error().code == errc::exhausted)
            users_.warn(s, about_checksums,
                        fmt::format("a save waits for its checksum: {}", sums.error().text()));
        give_up_holed(users_, s, c->rank);
        co_return false;
    }
    s->warnings.works_again(about_checksums);
    c->chunks = std::move(*sums);
    const auto& header = *reinterpret_cast<const rank_memory_header*>(c->memory->data());
    const auto view = read_buffer(header.buffer[static_cast<std::size_t>(c->buffer < 0 ? 0 : c->buffer)]);
    if (c->dropped || c->buffer < 0 || !view || view->sequence != before || view->bytes != c->bytes ||
        view->step != c->key.step || view->generation != c->key.generation) {
        ++s->bytes.torn;
        co_return false;
    }
    c->checked = true;
    s->agreed->checked(c->number);
    co_return true;
}

task<void> protector::secure(session_ptr s, copy_ptr c, std::size_t buffer) {
    const bool intact = co_await checksum(s, c);
    s->in_checksum.erase({c->rank, buffer});  // c->buffer may be another by now
    --s->pending;
    s->notify();
    if (intact) {
        const auto early = [&] {
            return !s->closed && !c->dropped && c->key.generation == s->generation &&
                   !s->agreed->rules().has_begun();
        };
        c->waits_since = clock::now();
        while (early()) co_await s->changed->wait(clock::now() + std::chrono::minutes(1));
        ++s->pending;
        c->waits_since = {};
        co_await protect(s, c);
        --s->pending;
    } else {
        if (!c->dropped) {
            c->dropped = true;
            s->agreed->lose(c->number);
            std::erase(s->copies, c);
        }
        // What was sealed there meanwhile was not looked at. Not at once: what was lacking may be lacking
        // still.
        timer pause(core_.io, look_again);
        co_await pause.async_wait(as_result);
        if (!s->closed) note_sealed(s, c->rank, buffer);
    }
    s->notify();
}

task<void> protector::protect(session_ptr s, copy_ptr c) {
    const auto generation = s->generation;
    core_.spawn(watch(s, c));
    const bool replicated = co_await replicate(s, c);
    c->handled = true;
    c->waits_since = clock::now();
    give_up_holed(users_, s, c->rank);
    if (s->closed || c->dropped || s->generation != generation) co_return;
    s->agreed->safe(c->number, replicated ? agreement::level::replicated : agreement::level::memory);
}

std::shared_ptr<link> protector::link_to_buddy(const session& s) {
    if (!s.slot) return nullptr;
    const auto buddy = s.request.nodes[*s.slot].buddy;
    return buddy == *s.slot ? nullptr : peers_.link_to(s.request.nodes[buddy], true);
}

task<void> protector::watch(session_ptr s, copy_ptr c) {
    const auto to = link_to_buddy(*s);
    const auto born = s->generation;
    const auto is_over = [s, born] { return s->closed || s->generation != born; };
    while (to && !is_over() && !c->dropped && !c->handled) {
        // Of one that is silent nothing is waited for: the copy gets its vote at once.
        const bool late = to->is_late();
        if (late != c->held_up && !(late && to->is_silent())) {
            c->held_up = late;
            show_whether_stalled(s);
        }
        const auto now = clock::now();
        co_await s->changed->wait(late ? now + look_again : std::min(to->late_at(), now + look_at_buddy));
    }
    const auto since = clock::now();
    const auto until = since + longest_wait;
    bool told = false;
    while (!is_over() && !c->dropped && s->committed < c->key && clock::now() < until) {
        const auto usually = since + s->commits.limit(commits_within);
        if (!told && clock::now() > usually) {
            told = true;
            show_whether_stalled(s);
        }
        co_await s->changed->wait(told ? until : usually + milliseconds(1));
    }
    // What a launch has begun from is complete before.
    if (!is_over() && s->committed >= c->key && c->key.generation == s->generation)
        s->commits.note(clock::now() - since);
}

task<bool> protector::replicate(session_ptr s, copy_ptr c) {
    const auto to = link_to_buddy(*s);
    if (!to) co_return false;
    const auto name = s->request.nodes[s->request.nodes[*s->slot].buddy].name;
    const auto until = clock::now() + busy_timeout;
    const auto memory = c->memory;  // the copy may move to another place meanwhile
    const auto image = c->data();
    const auto only_here = [&] {
        return fmt::format("node {} does not take copies: state of {} is in its own memory only", name,
                           s->self());
    };
    const std::function<bool()> wanted = [c, s, born = s->generation] {
        return !c->dropped && !s->closed && s->generation == born;
    };
    // In the order of the steps: the buddy's room is limited, and room given to a newer one first could leave
    // every rank with others.
    const auto older = [&] {
        return std::any_of(s->copies.begin(), s->copies.end(), [&](const auto& o) {
            return o->rank == c->rank && o->own && o->key < c->key &&
                   o->key.generation == c->key.generation && !o->handled;
        });
    };
    while (wanted() && older() && clock::now() < until) co_await s->changed->wait(until);
    link::put_place place;
    while (wanted() && clock::now() < until) {
        // A buddy that does not answer holds up one save, not each: it is looked for behind their backs.
        if (to->is_silent()) {
            users_.warn(s, name, only_here());
            const std::function<bool()> needed = [weak = std::weak_ptr(s)] {
                const auto job = weak.lock();
                return job && !job->closed && !job->detached;
            };
            core_.spawn(probe_silent(to, needed));
            co_return false;
        }
        json meta = header_of(*s);
        put_key(meta, c->key);
        meta["rank"] = c->rank;
        meta["bytes"] = c->bytes;
        meta["chunks"] = c->chunks;
        link::put_count sent;
        place.new_memory = needs_memory(s, c, name);
        const auto put = co_await to->put(std::move(meta), image, place, wanted, &sent);
        s->bytes.peer_sent += sent.bytes;
        if (sent.damaged != 0 && wanted() && is_as_sealed(*c))
            users_.note_sent_damage(s, c->rank, c->key, name);
        if (put && *put == link::put_result::done) {
            note_taken(s, c, name);
            s->warnings.works_again(name);
            co_return true;
        }
        // Perhaps its daemon is being started again.
        if (!put && put.error().code == errc::unavailable && !to->is_silent()) {
            co_await s->changed->wait(clock::now() + look_again);
            continue;
        }
        if (!put) {
            if (wanted() && put.error().code != errc::conflict)
                users_.warn(
                    s, name,
                    only_here() + (put.error().code == errc::exhausted ? ": " + put.error().text() : ""));
            else if (wanted())
                spdlog::debug("job {}: rank {} step {}: {}", s->job(), c->rank, c->key.step,
                              put.error().text());
            co_return false;
        }
        place.was_busy = true;
        co_await s->changed->wait(clock::now() + milliseconds(10));
    }
    co_return false;
}

task<void> protector::settle(session_ptr s, clock::time_point until) {
    const auto straggler = std::min(until, clock::now() + milliseconds(250));
    const auto newest = [&s] {
        copy_key key;
        for (const auto& c : s->copies)
            if (c->buffer >= 0 && c->key.generation == s->generation) key = std::max(key, c->key);
        return key;
    };
    while (!s->closed && clock::now() < until) {
        const bool reached = s->committed && newest() <= *s->committed;
        if (s->pending == 0 && (reached || newest() == copy_key{} || clock::now() >= straggler)) break;
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(20)));
    }
}

task<answer_meta> protector::seal_now(json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    const auto timeout_ms = json_fields(meta).number("timeout_ms", 600'000).value_or(1000);
    const auto until = clock::now() + milliseconds(timeout_ms);
    json jobs = json::array();
    for (const auto& s : core_.all_sessions()) {
        if (job != 0 && s->job() != job) continue;
        for (const auto& [rank, r] : s->ranks)
            if (r.memory && r.owner != 0 && r.generation == s->generation) scan_buffers(s, rank);
        co_await settle(s, until);
        json one;
        if (s->committed) one["step"] = s->committed->step;
        one["replicated"] = s->committed && s->committed_replicated;
        // Within their job: who asks may know of one state for each.
        if (!s->state.empty()) {
            one["state"] = s->state;
            jobs.back()["states"].push_back(std::move(one));
            continue;
        }
        one["job"] = s->job();
        jobs.push_back(std::move(one));
    }
    if (job != 0 && jobs.empty())
        co_return fail(errc::not_found, fmt::format("job {} has no session on this node", job));
    json out;
    out["jobs"] = std::move(jobs);
    co_return out;
}

}  // namespace banyan::ckpt
