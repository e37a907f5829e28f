// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/directories.hpp"

#include <fmt/format.h>

#include "common/addresses.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds storage_timeout{3000};  // for a first look at the checkpoint directory
constexpr milliseconds beat_every{3000};
constexpr std::uint64_t beats_watched = 5;  // so many that are missing in a row: nobody lives there
constexpr int beats_of_life = 2;            // one may have been on its way when its job ended
constexpr milliseconds least_beat{50}, most_beat{10'000};
constexpr milliseconds least_look{20}, most_look{500};
constexpr milliseconds release_timeout{5000};
constexpr milliseconds resolve_timeout{2000};  // of all nodes, for whoever reads the claim
constexpr int most_attempts = 8;               // against others that take over at the same time

milliseconds beat_of(const owner_record& owner) {
    // 0: a claim that is being written, or that is damaged.
    if (owner.beat_ms == 0) return beat_every;
    return std::clamp(milliseconds(owner.beat_ms), least_beat, most_beat);
}

error belongs_to_another(const session& s, const owner_record& owner) {
    const auto& dir = s.request.dir;
    if (owner.job == s.job())
        return {
            errc::conflict,
            fmt::format("the checkpoint directory {} is used by a newer start of job {} (generation {:x}, "
                        "node {}): this one writes no more",
                        dir, s.job(), owner.generation, owner.node),
            "nothing is to be done when the job was started again"};
    return {
        errc::conflict,
        fmt::format("the checkpoint directory {} belongs to job {}, which is running (node {}): job {} "
                    "neither reads nor writes there",
                    dir, owner.job, owner.node, s.job()),
        fmt::format("give it a directory of its own, or start it again when job {} has ended", owner.job)};
}

}  // namespace

task<std::string> directories::prepare(session_ptr s) {
    if (s->request.dir.empty()) co_return std::string();
    // The answer may come late or never: a worker of the storage pool waits for it, not this session.
    const auto answer = std::make_shared<std::optional<result<void>>>();
    core_.spawn(look_at(s, answer));
    const auto until = clock::now() + storage_timeout;
    while (!answer->has_value() && clock::now() < until) co_await s->changed->wait(until);
    if (!answer->has_value())
        co_return fmt::format(
            "the checkpoint directory {} does not answer: state is kept in memory only for now",
            s->request.dir);
    if (**answer) co_return std::string();
    co_return fmt::format("{}: state is kept in memory only for now", (*answer)->error().text());
}

task<void> directories::look_at(session_ptr s, std::shared_ptr<std::optional<result<void>>> answer) {
    const auto uid = s->request.uid;
    const auto gid = s->request.gid;
    const auto dir = s->request.dir;
    // A directory service may be as slow as storage.
    const auto find = [uid, gid]() -> result<storage_user> { return find_user(uid, gid); };
    auto found = co_await core_.storage.run(uid, find);
    if (found) s->user = std::move(*found);
    const auto user = s->user;
    const auto prepare = [user, dir] { return prepare_directory(user, dir); };
    *answer = co_await core_.storage.run(uid, prepare);
    s->notify();
}

task<result<claim>> directories::own(session_ptr s) {
    auto& hold = s->hold;
    if (!hold.lock) hold.lock = std::make_shared<async_lock>(core_.io.get_executor());
    const auto held = co_await hold.lock->acquire();
    const auto generation = s->generation;
    if (hold.generation != generation) {
        hold.generation = generation;
        hold.refused.reset();
        hold.lost = false;
    }
    if (hold.refused) co_return std::unexpected(*hold.refused);
    if (hold.held && hold.held->generation == generation) co_return *hold.held;
    const auto user = s->user;
    const auto uid = user.uid;
    const auto dir = s->request.dir;
    claim wanted{dir, 0, s->job(), generation, s->self(), static_cast<std::uint64_t>(beat_every.count()), 0};
    const auto refuse = [&](const owner_record& owner) {
        hold.refused = belongs_to_another(*s, owner);
        return std::unexpected(*hold.refused);
    };
    std::optional<owner_record> watched;
    int beats = 0;
    clock::time_point since{};
    for (int attempt = 0; attempt < most_attempts;) {
        const auto look = [user, dir] { return read_owner(user, dir); };
        BANYAN_CO_TRY(const auto owner, co_await core_.owners.run(uid, look));
        if (s->closed || s->generation != generation)
            co_return fail(errc::unavailable, fmt::format("job {}: its session has ended", s->job()));
        const auto verdict = judge_owner(owner, s->job(), generation);
        if (verdict == claim_verdict::fenced) co_return refuse(*owner);
        // It was ours, and another job found us silent: it may have restored from there by now.
        if (hold.lost && owner && owner->job != s->job()) co_return refuse(*owner);
        if (verdict == claim_verdict::watch) {
            if (watched && *watched != *owner && owner->job != 0 && !owner->ending &&
                ++beats >= beats_of_life)
                co_return refuse(*owner);
            // What it leaves is what this one begins from.
            if (owner->ending && !s->agreed->rules().has_begun())
                s->storage.problem =
                    fmt::format("job {} has ended and still writes its newest step to {}", owner->job, dir);
            if (!watched || *watched != *owner) {
                watched = owner;
                since = clock::now();
                spdlog::info("job {}: {} was job {}'s: is it alive?", s->job(), dir, owner->job);
            }
            const auto beat = beat_of(*owner);
            if (clock::now() < since + beat * beats_watched) {
                hold.watching = true;
                co_await s->changed->wait(clock::now() + std::clamp(beat / 4, least_look, most_look));
                hold.watching = false;
                continue;
            }
        }
        ++attempt;
        if (owner && owner->job == s->job() && !s->agreed->rules().has_begun()) {
            s->agreed->earlier().note_claim(owner->generation);
            s->agreed->earlier().add_all(owner->nodes);
        }
        wanted.nodes = s->agreed->rules().earlier().nodes();
        for (const auto& [name, addr] : s->addresses) wanted.nodes.insert_or_assign(name, addr);
        const auto take = [user, wanted, owner]() mutable {
            wanted.nodes = numeric_addresses(wanted.nodes, resolve_timeout);
            return take_claim(user, wanted, owner);
        };
        auto taken = co_await core_.owners.run(uid, take);
        if (!taken && taken.error().code == errc::conflict) continue;
        if (!taken) co_return std::unexpected(taken.error());
        spdlog::info("job {}: {} is its own (claim {}{})", s->job(), dir, taken->number,
                     owner ? fmt::format(", before it job {}'s", owner->job) : std::string());
        hold.held = *taken;
        core_.spawn(beat(s, *taken));
        co_return *taken;
    }
    co_return fail(errc::unavailable, fmt::format("several jobs take the checkpoint directory {} over", dir),
                   "give each of them a directory of its own");
}

void directories::lost(const session_ptr& s, const claim& c, const error& why) {
    if (why.code != errc::conflict && why.code != errc::not_found) return;
    if (!s->hold.held || s->hold.held->number != c.number) return;
    s->hold.held.reset();
    s->hold.lost = true;
    // A newer start of the job on other nodes is no news: ours is over.
    spdlog::warn("job {}: {}", s->job(), why.text());
}

task<void> directories::release(session_ptr s, claim c, std::shared_ptr<bool> over) {
    const auto work = [user = s->user, c] { return release_claim(user, c); };
    const auto released = co_await core_.owners.run(s->user.uid, work);
    if (!released) spdlog::info("job {}: {}", s->job(), released.error().text());
    *over = true;
    s->notify();
}

task<void> directories::forget_former(session_ptr s) {
    auto c = *s->hold.held;
    std::erase_if(c.nodes, [&](const auto& node) { return !s->addresses.contains(node.first); });
    const auto work = [user = s->user, c] { return rewrite_nodes(user, c); };
    const auto written = co_await core_.owners.run(s->user.uid, work);
    if (!written) spdlog::debug("job {}: {}", s->job(), written.error().text());
}

task<void> directories::beat(session_ptr s, claim c) {
    ++claims_;
    const auto mine = [&] { return s->hold.held && s->hold.held->number == c.number; };
    const auto ended = [&] {
        return s->closed || (s->detached && !s->ending && !s->flush.now && !s->flush.writing());
    };
    const auto uid = s->user.uid;
    const auto user = s->user;
    const auto wait = [&](clock::time_point until) -> task<void> {
        while (mine() && !ended() && c.ending == s->ending && clock::now() < until)
            co_await s->changed->wait(until);
    };
    co_await wait(clock::now() + beat_every);
    while (mine() && !ended()) {
        const auto next = clock::now() + beat_every;
        c.ending = s->ending;
        const auto work = [user, c]() mutable -> result<claim> {
            BANYAN_CHECK(beat_claim(user, c));
            return c;
        };
        const auto beaten = co_await core_.owners.run(uid, work);
        if (beaten)
            c = *beaten;
        else
            lost(s, c, beaten.error());
        co_await wait(next);
    }
    if (mine()) {
        s->hold.held.reset();
        const auto over = std::make_shared<bool>(false);
        core_.spawn(release(s, c, over));
        const auto until = clock::now() + release_timeout;
        while (!*over && clock::now() < until) co_await s->changed->wait(until);
    }
    --claims_;
}

}  // namespace banyan::ckpt
