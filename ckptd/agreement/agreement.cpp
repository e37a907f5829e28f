// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/agreement/agreement.hpp"

#include <algorithm>
#include <utility>

namespace banyan::ckpt::agreement {
namespace {

constexpr std::uint32_t coordinating_slot = 0;
/// Steps of a rank that are not committed yet: it has so many buffers, and its buddy room for so many copies.
constexpr std::uint32_t most_on_their_way = 3;
constexpr std::size_t most_in_storage = 16;  // steps: more than can be damaged and still be worth a start

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;  // clang 16 does not deduce it

}  // namespace

void agreement::say(effects& out, std::uint32_t to, body what) const {
    out.send.emplace_back(to, message{launch_.generation, std::move(what)});
}

void agreement::enter(std::uint64_t generation, bool forgetful) {
    const bool same_launch = first_round(generation) == first_round(launch_.generation);
    launch_.generation = generation;
    member_ = member(launch_.nonce, forgetful);
    counter_ = vote_counter(launch_.world);
    saves_.clear();
    again_ = false;
    commits_alone_ = 0;
    if (!same_launch) {
        storage_.reset();
        outside_.reset();
    }
    coordinate();
}

void agreement::coordinate() {
    coordinator_.reset();
    if (launch_.self != coordinating_slot) return;
    // Its ballots are of this round alone: what is still being brought for another one answers none of them.
    constexpr std::uint64_t odd =
        0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: other high bits each time
    coordinator_.emplace(launch_.nodes, launch_.world, launch_.nonce ^ launch_.generation * odd,
                         launch_.group);
    if (outside_) coordinator_->set_outside(*outside_);
    // Those outside who were not asked may be needed in this round. Not if it has been decided.
    const bool asked = outside_ && !outside_->in_haste;
    if (storage_ && (asked || has_begun())) coordinator_->set_storage(*storage_, asked);
}

void agreement::recall(std::uint64_t nonce) {
    launch_.nonce = nonce;
    member_.recall(nonce);
    counter_ = vote_counter(launch_.world);
    if (!has_begun()) storage_.reset();  // it is looked at anew, with the nodes that are asked besides
    if (launch_.generation != 0) coordinate();
}

effects agreement::open(const launch& l) {
    effects out;
    if (l.generation <= launch_.generation) return out;
    launch_ = l;
    launch_.generation = 0;
    over_ = false;
    ended_by_ = 0;
    earlier_.open();
    if (leader_ >= l.nodes) leader_ = coordinating_slot;  // of a launch with more nodes
    enter(l.generation, l.forgetful);
    out.fenced = true;
    again_ = l.forgetful;
    urge(out);
    return out;
}

bool agreement::end_launch(std::uint64_t later) {
    if (later <= last_round(launch_.generation)) return false;
    const bool news = later > ended_by_;
    ended_by_ = std::max(ended_by_, later);
    return !std::exchange(over_, true) || news;
}

void agreement::next_round(effects& out) {
    if (launch_.generation == last_round(launch_.generation)) return;
    enter(launch_.generation + 1, false);
    out.fenced = true;
    urge(out);
}

void agreement::urge(effects& out) const {
    if (!coordinator_) return;
    for (const auto& [to, what] : coordinator_->due()) say(out, to, what);
}

effects agreement::tick() {
    effects out;
    if (over_) return out;
    urge(out);
    if (again_) say(out, coordinating_slot, again{member_.is_forgetful()});
    if (has_begun())
        for (const auto& [rank, known] : saves_) cast(out, rank);
    const auto newest = committed(level::memory);
    const auto& slots = launch_.slot_of_rank;
    for (const auto& c : shelf_.copies())
        // A peer says of which rank and launch a copy is, and may do so before a larger launch begins.
        if (!c.own && c.what.key.generation == launch_.generation && c.what.key != newest &&
            c.what.rank < slots.size())
            say(out, slots[c.what.rank], still_needed{c.what});
    return out;
}

effects agreement::storage_holds(std::vector<copy_key> committed, std::optional<word_outside> outside) {
    effects out;
    storage_ = std::move(committed);
    outside_ = std::move(outside);
    if (!coordinator_ || over_) return out;
    const auto before = coordinator_->stage();
    if (outside_) coordinator_->set_outside(*outside_);
    coordinator_->set_storage(*storage_, outside_ && !outside_->in_haste);
    if (coordinator_->stage() != before) urge(out);
    return out;
}

bool agreement::needs_outside() const {
    const auto newest = coordinator_ ? coordinator_->newest_if_whole() : std::nullopt;
    return !newest || earlier_.claimed() == 0 || newest->generation < first_round(earlier_.claimed());
}

void agreement::stored(const copy_key& key, std::size_t kept) {
    if (!storage_) return;
    std::erase_if(*storage_, [&](const auto& one) { return one.step == key.step; });
    storage_->insert(storage_->begin(), key);
    if (kept == 0 || kept > most_in_storage) kept = most_in_storage;
    if (storage_->size() > kept) storage_->resize(kept);
}

void agreement::carry_out(effects& out, std::uint32_t coordinator, member::orders what) {
    if (what.answer) {
        if (auto* mine = std::get_if<inventory>(&*what.answer)) mine->former = earlier_.list();
        say(out, coordinator, std::move(*what.answer));
    }
    if (what.bring) out.bring = std::move(what.bring);
    if (!what.go) return;
    again_ = false;
    out.go = true;
    shelf_.note_release(member_.released_with(), member_.replicated(), launch_.generation);
    out.gone = shelf_.sweep();
}

effects agreement::brought(const ballot& number, std::vector<std::uint32_t> failed) {
    effects out;
    if (over_) return out;
    carry_out(out, coordinating_slot, member_.brought(number, std::move(failed)));
    return out;
}

effects agreement::begin_again() {
    effects out;
    if (!has_begun() || over_) return out;  // a round that is still open: its end answers this one, too
    again_ = true;
    say(out, coordinating_slot, again{member_.is_forgetful()});
    return out;
}

effects agreement::receive(std::uint32_t from, const message& m) {
    effects out;
    if (over_) return out;
    const auto* asks = std::get_if<again>(&m.what);
    const bool lost_count =
        asks && asks->forgetful && first_round(m.generation) == first_round(launch_.generation);
    if (m.generation < launch_.generation && !lost_count) {
        // A coordinator that has lost count: with any answer it sees which round this is.
        if (std::holds_alternative<collect>(m.what) &&
            first_round(m.generation) == first_round(launch_.generation))
            say(out, from, outbid{});
        return out;
    }
    if (m.generation > launch_.generation) {
        // Another round of the launch that we know, or nothing that we were told of.
        if (first_round(m.generation) != first_round(launch_.generation)) return out;
        // Whoever has forgotten may have been in this round before.
        enter(m.generation, member_.is_forgetful());
        out.fenced = true;
    }
    const auto to_coordinator = [&](const auto& what) {
        if (!coordinator_) return;
        const auto before = coordinator_->stage();
        coordinator_->on(from, what);
        if (coordinator_->now() == coordinator::phase::stale)
            next_round(out);
        else if (coordinator_->stage() != before)
            urge(out);
    };
    std::visit(overloaded{
                   [&](const collect& w) { carry_out(out, from, member_.on(w, shelf_)); },
                   [&](const prepare& w) { carry_out(out, from, member_.on(w, shelf_)); },
                   [&](const release& w) { carry_out(out, from, member_.on(w)); },
                   [&](const inventory& w) { to_coordinator(w); },
                   [&](const prepared& w) { to_coordinator(w); },
                   [&](const released& w) { to_coordinator(w); },
                   [&](const outbid& w) { to_coordinator(w); },
                   [&](const again&) {
                       if (coordinator_ && has_begun()) next_round(out);
                   },
                   [&](const vote& w) { count(out, from, w); },
                   [&](const commit& w) { apply(out, w); },
                   [&](const passed_over& w) { pass_over(out, w.key); },
                   [&](const still_needed& w) { answer(out, from, w); },
                   [&](const let_go& w) { free(out, w); },
               },
               m.what);
    return out;
}

bool agreement::stands_alone() const {
    const auto newest = committed(safest());
    if (!has_begun() || !newest || newest->generation != launch_.generation) return false;
    // On one node nothing overtakes what was replicated on more: without this node that is all there is.
    return launch_.nodes > 1 || !committed(level::replicated);
}

bool agreement::has_gone_on_alone() const { return stands_alone() && commits_alone_ > most_on_their_way; }

bool agreement::is_of_this_round(const copy_key& key) const {
    return has_begun() && (key.generation == launch_.generation || key == begun_from());
}

void agreement::add(const shelf::copy& c) {
    shelf_.add(c);
    if (c.own && c.what.key.generation == launch_.generation) skipped(c.what.rank, c.what.key.step);
}

void agreement::skipped(std::uint32_t rank, std::uint64_t step) {
    auto& known = saves_.try_emplace(rank, saved_steps{step, step}).first->second;
    known.end = std::max(known.end, step + 1);
}

// What was saved since a later launch was told of all that is held here is of none: it was promised nowhere.
void agreement::checked(shelf::id number) {
    if (auto* c = over_ ? nullptr : shelf_.find(number)) c->checked = true;
}

void agreement::promised(shelf::id number) {
    if (auto* c = shelf_.find(number)) c->voted = level::replicated;
}

effects agreement::safe(shelf::id number, level safety) {
    effects out;
    auto* c = shelf_.find(number);
    if (over_ || !c || !c->own || !c->checked || c->voted || !is_of_this_round(c->what.key)) return out;
    // A copy of a rank that was here in an earlier launch: another daemon has its vote now.
    const auto& slots = launch_.slot_of_rank;
    if (c->what.rank >= slots.size() || slots[c->what.rank] != launch_.self) return out;
    saves_.try_emplace(c->what.rank, saved_steps{});
    c->voted = safety;
    cast(out, c->what.rank);
    return out;
}

void agreement::cast(effects& out, std::uint32_t rank) const {
    const auto known = saves_.find(rank);
    if (known == saves_.end()) return;
    vote v{rank, {}, known->second.first, known->second.end};
    for (const auto& c : shelf_.copies()) {
        if (!c.own || c.what.rank != rank || !is_of_this_round(c.what.key)) continue;
        // What the launch began from may have come to less in it than in the one before.
        const bool of_this_launch = c.what.key.generation == launch_.generation;
        if (c.voted)
            v.kept.push_back(
                {c.what.key, *c.voted, of_this_launch && c.what.key == committed(level::replicated)});
        else if (of_this_launch)
            v.end = std::min(v.end, c.what.key.step);
    }
    say(out, leader_, std::move(v));
}

void agreement::count(effects& out, std::uint32_t from, const vote& v) {
    if (!has_begun()) return;
    auto decided = counter_.count(launch_.generation, begun_from(), v);
    for (auto& what : decided.known) say(out, from, std::move(what));
    const auto tell = [&](const auto& what) {
        for (std::uint32_t slot = 0; slot < launch_.nodes; ++slot)
            if (slot != launch_.self) say(out, slot, what);
    };
    for (const auto& c : decided.committed) {
        tell(c);
        apply(out, c);
    }
    for (const auto& key : decided.passed_over) {
        tell(passed_over{key});
        pass_over(out, key);
    }
    out.counted = !out.fenced && decided.committed.empty() && decided.passed_over.empty();
}

void agreement::apply(effects& out, const commit& c) {
    // Before the ranks have gone there is nothing of this round; what comes early comes again.
    if (!is_of_this_round(c.key)) return;
    const auto before = committed(safest());
    shelf_.note_commit(c.key, c.safety);
    if (c.key.generation == launch_.generation && committed(safest()) > before) ++commits_alone_;
    if (has_gone_on_alone()) out.forgot = earlier_.forget();
    for (const auto number : shelf_.sweep()) out.gone.push_back(number);
}

void agreement::pass_over(effects& out, const copy_key& key) {
    if (!has_begun() || key.generation != launch_.generation) return;
    shelf_.note_passed_over(key);
    for (const auto number : shelf_.sweep()) out.gone.push_back(number);
}

void agreement::answer(effects& out, std::uint32_t from, const still_needed& asked) const {
    const auto known = saves_.find(asked.what.rank);
    // Only of steps that this life of the daemon has seen from the beginning to the end.
    if (asked.what.key.generation != launch_.generation || known == saves_.end() ||
        asked.what.key.step < known->second.first || shelf_.needs_elsewhere(asked.what))
        return;
    say(out, from, let_go{asked.what});
}

void agreement::free(effects& out, const let_go& said) {
    const auto* c = shelf_.find(said.what, false);
    if (!c || said.what.key == committed(level::memory) || said.what.key == committed(level::replicated))
        return;
    out.gone.push_back(c->number);
    shelf_.lose(c->number);
}

}  // namespace banyan::ckpt::agreement
