// SPDX-License-Identifier: BSD-3-Clause
#include "test/simulator/job.hpp"

#include <fmt/ranges.h>

namespace banyan::ckpt::simulator {

using agreement::launch;

job::job(std::uint64_t seed, const settings& s) : launch_nodes(seed, s) {
    for (std::uint32_t i = 0; i < s.slots; ++i) assignment_.push_back(i);
    ranks_.resize(s.slots);
}

void job::start_launch() {
    ++launches_;
    generation_ = std::uint64_t{launches_} << round_bits;
    const auto before = slots();
    plan_.insert(plan_.begin(), assignment_.begin(), assignment_.end());
    if (settings_.group != 0 && launches_ > 1) choose_groups();
    out_.fewer += slots() < before;
    out_.more += slots() > before;
    replace_dead();
    if (settings_.moves && launches_ > 1) move_on();
    heard_ = known_of_ = {assignment_.begin(), assignment_.end()};
    promised_ = {heard_, {}, {}};
    std::set<std::uint32_t> seen(assignment_.begin(), assignment_.end());
    std::erase_if(plan_, [&](auto node) { return !seen.insert(node).second; });
    plan_.resize(std::min<std::size_t>(plan_.size(), 2 * slots()));
    given_up_.clear();
    earlier_.clear();
    asked_by_ = 0;
    say("launch {} on {}", launches_, fmt::join(assignment_, " "));
    for (auto& r : ranks_) r = {};
    for (const auto node : assignment_)
        if (nodes_[node].daemon_runs && !nodes_[node].paused) renew(node, true);
    // The step may begin long after its nodes' prologs.
    const auto begins = settings_.moves && chance(0.5) ? between(0, 150'000) : 0;
    in(begins, [this, generation = generation_] {
        if (generation != generation_) return;
        for (std::uint32_t slot = 0; slot < slots(); ++slot) tell_launch(slot, generation, false);
    });
}

void job::renew(std::uint32_t i, bool is_prolog) {
    auto& n = nodes_[i];
    if (std::exchange(n.renewed, generation_) == generation_) return;
    auto& earlier = n.agreed.earlier();
    earlier.renew();
    for (const auto member : n.members) earlier.add(address_of(member));
    n.has_plan = settings_.plans && is_prolog;
    if (n.has_plan)
        for (const auto other : plan_) earlier.add(address_of(other));
    for (const auto& [name, addr] : earlier.nodes()) n.left.insert(number_of(name));
    for (const auto member : assignment_) n.left.erase(member);
}

void job::tell_launch(std::uint32_t slot, std::uint64_t generation, bool forgetful) {
    in(static_cast<time_us>(uniform(100, 5'000)), [=, this] {
        if (generation != generation_) return;
        auto& n = nodes_[assignment_[slot]];
        if (!n.up) return;
        if (!n.daemon_runs || n.paused) return tell_launch(slot, generation, forgetful);
        open(assignment_[slot], slot, forgetful);
        start_process(slot);
    });
}

void job::open(std::uint32_t i, std::uint32_t slot, bool forgetful) {
    launch l;
    l.generation = generation_;
    l.self = slot;
    l.nodes = l.world = slots();
    for (std::uint32_t rank = 0; rank < slots(); ++rank) l.slot_of_rank.push_back(rank);
    l.group = settings_.group;
    l.nonce = number();
    l.forgetful = forgetful;
    auto& n = nodes_[i];
    renew(i, !forgetful);
    n.members = assignment_;
    n.asks_since.reset();
    act(i, nodes_[i].agreed.open(l));
    if (slot == 0) look_at_storage(i);
}

void job::look_at_storage(std::uint32_t i) {
    const auto life = nodes_[i].daemon_life;
    const auto look = ++nodes_[i].look;
    in(static_cast<time_us>(uniform(100, 20'000)), [=, this, generation = generation_] {
        at_daemon(i, life, [=, this] {
            auto& n = nodes_[i];
            if (n.look != look || (settings_.moves && (generation != generation_ || slot_of(i) != 0u)))
                return;
            const auto* c = n.agreed.coordinating();
            if (!c) return;
            if (settings_.moves && !n.agreed.has_begun()) {
                if (settings_.claims) claim_.take(n.agreed.earlier(), assignment_);
                // All say first what they hold.
                if (!c->waits_for().empty() || waits_for_former(i)) return look_at_storage(i);
            }
            n.looked = look;
            const auto known = former_nodes(i);
            if (known) say("slot 0 asks {}", fmt::join(*known, " "));
            std::optional<agreement::word_outside> held;
            if (known) held = held_outside(i, *known);
            act(i, nodes_[i].agreed.storage_holds({}, std::move(held)));
            if (c = nodes_[i].agreed.coordinating(); c && c->awaited()) ++out_.awaited;
        });
    });
}

void job::move_on() {
    for (auto& slot : assignment_) {
        if (chance(0.5)) continue;
        const auto to = below(nodes_.size());
        if (nodes_[to].up && !slot_of(to)) slot = to;
    }
}

void job::start_process(std::uint32_t slot) {
    auto& r = ranks_[slot];
    r = {};
    r.now = rank_process::doing::waits;
    r.number = ++processes_;
    auto& n = nodes_[assignment_[slot]];
    // Only a process of a launch that has gone before asks for another round.
    if (n.agreed.has_begun()) act(assignment_[slot], n.agreed.begin_again());
}

void job::relaunch() {
    ++out_.relaunches;
    const auto generation = generation_;
    for (auto& r : ranks_) r.now = rank_process::doing::dead;
    in(static_cast<time_us>(uniform(1'000, 30'000)), [=, this] {
        if (generation == generation_) start_launch();
    });
}

void job::act(std::uint32_t i, const effects& e) {
    const auto slot = nodes_[i].agreed.slot();
    for (const auto id : e.gone) nodes_[i].memory.erase(id);
    for (const auto& [to, m] : e.send) {
        // To the nodes of the launch that it knows, whoever is in the newest.
        const auto target = nodes_[i].members.at(to);
        deliver(i, target, [this, slot, target, m] { act(target, nodes_[target].agreed.receive(slot, m)); });
    }
    if (e.fenced && is_current(i) && ranks_[slot].now == rank_process::doing::trains) fence(slot);
    if (e.bring) bring(i, *e.bring);
    if (e.go) go(i);
    acknowledge(i);
    if (e.forgot) {
        // What was acknowledged needs no former nodes. Nobody tells a node that its launch is over: it may
        // forget them later than that, but not by a step that nobody knew of when the newer one began.
        out_.forgot_late += nodes_[i].stood_alone != first_round(nodes_[i].agreed.generation());
        if (slot_of(i) == 0u && claim_.generation == generation_ && is_current(i))
            claim_.nodes = {assignment_.begin(), assignment_.end()};
    }
    if (nodes_[i].agreed.asks_outside() && slot_of(i) == 0u && nodes_[i].looked == nodes_[i].look)
        look_at_storage(i);
}

void job::fence(std::uint32_t slot) {
    auto& r = ranks_[slot];
    r.now = rank_process::doing::dead;
    const auto generation = generation_;
    in(static_cast<time_us>(uniform(500, 5'000)), [=, this] {
        if (generation != generation_ || ranks_[slot].now != rank_process::doing::dead) return;
        if (nodes_[assignment_[slot]].up) start_process(slot);
    });
}

void job::bring(std::uint32_t i, const prepare& p) {
    const auto slot = nodes_[i].agreed.slot();
    const auto life = nodes_[i].daemon_life;
    nodes_[i].bringing = p.number;
    in(static_cast<time_us>(uniform(200, 10'000)),
       [=, this] { at_daemon(i, life, [=, this] { bring_now(i, slot, p, 0); }); });
}

void job::bring_now(std::uint32_t i, std::uint32_t slot, const prepare& p, std::size_t at, bool silent) {
    auto& n = nodes_[i];
    if (slot >= n.members.size() || n.members[slot] != i) return;
    if (p.what.key && p.what.holders.size() != n.members.size()) return;  // of a launch with other groups
    // Overtaken, it would take the buffer of what was chosen since. (The seeds that are kept of jobs without
    // groups are of schedules in which it goes on.)
    if (settings_.group != 0 && n.bringing != p.number) return;
    const auto done = [&](bool good) {
        act(i, n.agreed.brought(p.number, good ? std::vector<std::uint32_t>() : std::vector{slot}));
    };
    if (!p.what.key) return done(true);
    const agreement::held wanted{*p.what.key, slot};
    if (const auto* own = n.agreed.copies().find(wanted, true); own) {
        if (own->checked && intact(i, own->number)) return done(true);
        drop(i, own->number);
    }
    const agreement::held given{*p.what.key, p.what.source_of(slot)};
    const auto& holders = p.what.holders[slot];
    const auto retry = [=, this](std::size_t next) {
        const auto life = nodes_[i].daemon_life;
        in(5'000, [=, this] { at_daemon(i, life, [=, this] { bring_now(i, slot, p, next); }); });
    };
    if (at >= holders.size() && silent) {
        if (is_current(i)) retry(0);
        return;
    }
    if (at >= holders.size()) {
        say("slot {} finds step {} with none of {} holders", slot, p.what.key->step, holders.size());
        return done(false);
    }
    const auto& members = n.members;
    const bool is_outside = holders[at] >= members.size();
    const auto from =
        is_outside ? number_of(p.what.outside[holders[at] - members.size()].name) : members[holders[at]];
    if (!answers(i, from)) {
        if (!is_current(i)) return;  // over
        return is_outside ? bring_now(i, slot, p, at + 1, true) : retry(at);
    }
    const shelf::copy* source = nullptr;
    for (const bool own : {true, false})
        if (const auto* c = nodes_[from].agreed.copies().find(given, own); c && c->checked && !source) {
            if (intact(from, c->number))
                source = c;
            else
                drop(from, c->number);
        }
    if (!source) return bring_now(i, slot, p, at + 1, silent);
    const auto state = nodes_[from].memory.at(source->number).state;
    make_buffer(i, slot, *p.what.key);
    put(i, wanted, true, state, true);
    out_.from_others += given.rank != slot;
    done(true);
}

void job::tell_departed(std::uint32_t i) {
    const auto& n = nodes_[i];
    if (n.members.empty() || n.agreed.slot() > 1 || !n.agreed.needs_no_former()) return;
    for (const auto to : n.left)
        deliver(i, to, [=, this, generation = n.agreed.generation(), alone = n.agreed.stands_alone()] {
            let_go(i, to, generation, alone);
            deliver(to, i, [=, this] { nodes_[i].left.erase(to); });
        });
}

// As after a lease that has ended.
void job::let_go(std::uint32_t teller, std::uint32_t i, std::uint64_t generation, bool alone) {
    auto& n = nodes_[i];
    if (!n.agreed.may_be_left_by(generation)) return;
    const auto copies = n.agreed.copies().copies();
    for (const auto& c : copies)
        if (!alone && first_round(generation) == generation_ && books_.is_whole(c.what.key, known_of_, *this))
            throw breach{fmt::format("node {} lets go of step {} of {:x}, from which nobody began", i,
                                     c.what.key.step, c.what.key.generation)};
    if (const auto needed = books_.needs(i, *this))
        throw breach{fmt::format("node {} lets go of step {} of {:x}, of which nobody else has its part", i,
                                 needed->step, needed->generation)};
    if (!copies.empty()) say("node {} is told by {} to let go of {} copies", i, teller, copies.size());
    out_.departures += !copies.empty();
    for (const auto& c : copies) drop(i, c.number);
}

}  // namespace banyan::ckpt::simulator
