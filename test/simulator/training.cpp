// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks: they begin, train in step, save, and have their saves copied.
#include "test/simulator/job.hpp"

namespace banyan::ckpt::simulator {
namespace {

constexpr time_us training_step = 5'000;

content after(content common, std::uint64_t generation, std::uint64_t step) {
    std::uint64_t z = common ^ (generation * 0x9e3779b97f4a7c15 + step + 0x7f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    return z ^ (z >> 27);
}

}  // namespace

using agreement::level;

void job::go(std::uint32_t i) {
    auto& n = nodes_[i];
    if (!is_current(i)) {  // the ranks of that launch have ended
        if (is_news(i)) books_.reached_all(n.agreed.begun_from(), *this);
        return;
    }
    const auto slot = n.agreed.slot();
    const auto key = n.agreed.begun_from();
    const auto generation = n.agreed.generation();
    ++out_.releases;
    say("slot {} goes with {} in {:x}", slot,
        key ? fmt::format("{:x}/{}", key->generation, key->step) : "nothing", generation);
    const auto [at, first] = begun_.try_emplace(generation, key);
    if (!first && at->second != key)
        for (const auto& other : ranks_)
            if (other.now == rank_process::doing::trains && !other.off && other.generation == generation)
                throw breach{fmt::format("slot {} begins from another step than the rest", slot)};
    for (bool judged = !first && at->second == key; !judged;) {
        const auto before = books_;
        try {
            if (books_.begin(key, n.agreed, promised_, {heard_.begin(), heard_.end()}, *this))
                ++out_.restored_older;
            judged = true;
        } catch (const breach&) {
            if (earlier_.empty()) throw;
            books_ = before;
            promised_ = earlier_.back().promised;
            given_up_.insert(earlier_.back().given_up.begin(), earlier_.back().given_up.end());
            earlier_.pop_back();
        }
    }
    at->second = key;
    for (const auto silent : given_up_) books_.give_up(silent, generation_);
    auto& r = ranks_[slot];
    if (r.now != rank_process::doing::waits) return;
    begin(slot, generation, key);
}

void job::begin(std::uint32_t slot, std::uint64_t generation, const std::optional<copy_key>& key) {
    auto& r = ranks_[slot];
    arrived_.erase(slot);
    r.now = rank_process::doing::trains;
    r.generation = generation;
    r.step = key ? key->step : UINT64_MAX;  // the first step that is saved is 0
    r.state = own_part(slot);
    if (key) {
        auto& n = nodes_[assignment_[slot]];
        const auto* c = n.agreed.copies().find({*key, slot}, true);
        const bool damaged = books_.is_damaged(assignment_[slot], *key);
        if (!c && !damaged) throw breach{fmt::format("rank {} goes and has no shard in its buffer", slot)};
        if (damaged && (!c || !intact(assignment_[slot],
                                      c->number))) {  // the library finds it, and the process ends
            if (c) drop(assignment_[slot], c->number);
            return relaunch();
        }
        r.state = n.memory.at(c->number).state;
        // Its second copy is made anew.
        replicate(assignment_[slot], slot, c->number, 0);
    }
    train(slot);
}

void job::train(std::uint32_t slot) {
    const auto process = ranks_[slot].number;
    in(static_cast<time_us>(uniform(0.8, 1.2) * training_step), [=, this] {
        if (ranks_[slot].number == process) finish_step(slot);
    });
}

void job::finish_step(std::uint32_t slot) {
    auto& r = ranks_[slot];
    if (r.now != rank_process::doing::trains || arrived_.contains(slot)) return;
    arrived_.insert(slot);
    std::erase_if(arrived_, [&](auto a) { return ranks_[a].now != rank_process::doing::trains; });
    if (arrived_.size() < slots()) return;
    for (std::uint32_t i = 0; i < slots(); ++i)
        if (ranks_[i].generation != r.generation) return;  // the old ones end, this waits
    arrived_.clear();
    const auto common = r.state ^ own_part(slot);
    for (std::uint32_t i = 0; i < slots(); ++i)
        if (ranks_[i].state != (common ^ own_part(i)) || ranks_[i].step != r.step)
            throw breach{"ranks train on different states"};
    for (std::uint32_t i = 0; i < slots(); ++i) {
        auto& each = ranks_[i];
        ++each.step;
        each.state = after(common, each.generation, each.step) ^ own_part(i);
        save(i, settings_.waits);
    }
}

void job::save(std::uint32_t slot, int tries) {
    const auto i = assignment_[slot];
    auto& n = nodes_[i];
    const auto& r = ranks_[slot];
    if (r.off || n.agreed.generation() != r.generation || !n.agreed.has_begun()) return train(slot);
    if (own_copies(i, slot).size() >= settings_.buffers) {
        if (tries == 0) return n.agreed.skipped(slot, r.step), train(slot);
        in(10'000, [=, this, process = r.number] {
            if (ranks_[slot].number == process && ranks_[slot].now == rank_process::doing::trains)
                save(slot, tries - 1);
        });
        return;
    }
    ++out_.saves;
    const auto id = put(i, {{r.generation, r.step}, slot}, true, r.state, false);
    books_.saved({r.generation, r.step}, slot, i, *this);
    const auto life = n.daemon_life;
    in(static_cast<time_us>(uniform(100, 2'000)),
       [=, this] { at_daemon(i, life, [=, this] { check_copy(i, slot, id); }); });
    train(slot);
}

void job::check_copy(std::uint32_t i, std::uint32_t slot, shelf::id id) {
    auto* c = find(i, id);
    if (!c) return;
    if (!intact(i, id)) return drop(i, id);
    nodes_[i].agreed.checked(id);
    replicate(i, slot, id, 0);
}

void job::replicate(std::uint32_t i, std::uint32_t slot, shelf::id id, int tries) {
    const auto* c = find(i, id);
    if (!c || nodes_[i].members.empty() || nodes_[i].agreed.slot() != slot) return;
    const auto to = nodes_[i].members[(slot + 1) % nodes_[i].members.size()];
    const auto life = nodes_[i].daemon_life;
    const auto later = [=, this](bool replicated) {
        at_daemon(i, life, [=, this] {
            act(i, nodes_[i].agreed.safe(id, replicated ? level::replicated : level::memory));
        });
    };
    const auto again = [=, this] {
        in(static_cast<time_us>(uniform(1'000, 10'000)),
           [=, this] { at_daemon(i, life, [=, this] { replicate(i, slot, id, tries + 1); }); });
    };
    if (to == i) return later(false);
    const bool there = reaches(i, to) && nodes_[to].daemon_runs && !nodes_[to].paused;
    if (!there && tries >= 3) return later(false);
    if (!there) return again();
    const auto what = c->what;
    if (!intact(i, id)) return drop(i, id);  // its checksums travel with it
    const auto state = nodes_[i].memory.at(id).state;
    deliver(i, to, [=, this] {
        if (!take_guest(i, to, what, state, nodes_[i].agreed.generation())) return;
        deliver(to, i, [=, this] { act(i, nodes_[i].agreed.safe(id, level::replicated)); });
    });
    // The answer may be lost: what is not replicated in time is voted for as it is.
    in(30'000, [=, this] {
        at_daemon(i, life, [=, this] {
            const auto* now = find(i, id);
            if (now && !now->voted && tries >= 1) return later(false);
            if (now && !now->voted && tries < 3) replicate(i, slot, id, tries + 1);
        });
    });
}

// Of what was begun from, if that is the newest that was acknowledged as replicated.
bool job::copies_are_anew(const std::optional<copy_key>& key) const {
    if (!key || books_.newest(level::replicated) != key) return false;
    for (std::uint32_t slot = 0; slot < slots(); ++slot) {
        const auto* c = nodes_[assignment_[slot]].agreed.copies().find({*key, slot}, true);
        if (!c || c->voted != level::replicated) return false;
    }
    return true;
}

void job::acknowledge(std::uint32_t i) {
    if (nodes_[i].members.empty() || !nodes_[i].agreed.has_begun()) return;
    const auto launch = first_round(nodes_[i].agreed.generation());
    if (nodes_[i].agreed.stands_alone() && is_news(i)) nodes_[i].stood_alone = launch;
    if (!is_news(i)) return;
    if (is_current(i) && copies_are_anew(nodes_[i].agreed.begun_from())) books_.renew(*this);
    for (const auto safety : {level::memory, level::replicated})
        if (books_.acknowledge(nodes_[i].agreed, safety, *this)) {
            ++out_.commits;
            say("node {} acknowledges step {} at level {}", i, books_.newest(safety)->step,
                static_cast<int>(safety));
        }
}

}  // namespace banyan::ckpt::simulator
