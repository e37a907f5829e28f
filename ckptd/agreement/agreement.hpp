// SPDX-License-Identifier: BSD-3-Clause
//
// All that a daemon agrees on with the others about one job: what a generation begins from, which steps are
// committed, and what may be freed. Pure and deterministic: messages and events in, effects out; whoever
// drives it sends, copies and frees. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ckptd/agreement/coordinator.hpp"
#include "ckptd/agreement/earlier_nodes.hpp"
#include "ckptd/agreement/member.hpp"
#include "ckptd/agreement/messages.hpp"
#include "ckptd/agreement/shelf.hpp"
#include "ckptd/agreement/vote_counter.hpp"

namespace banyan::ckpt::agreement {

/// A training step of the job as one daemon is told of it. `nodes` slots and `world` ranks.
struct launch {
    std::uint64_t generation = 0;
    std::uint32_t self = 0;  ///< this daemon's slot
    std::uint32_t nodes = 0;
    std::uint32_t world = 0;
    std::vector<std::uint32_t> slot_of_rank;
    std::uint64_t nonce = 0;  ///< of this life of the daemon
    /// The daemon was started after the step and has lost all: the process that asks may be another than the
    /// one that had gone. (One that had gone and lives on trains without saves: its memory is lost.)
    bool forgetful = false;
    /// Ranks that are a multiple of so many apart hold the same state, in earlier launches with another
    /// number of ranks, too; 0 = every rank's is its own.
    std::uint32_t group = 0;
};

/// The steps of this round that a daemon knows of one of its ranks: those from `first` on and below `end`.
struct saved_steps {
    std::uint64_t first = 0, end = 0;
};

/// What is to be done after an event, in any order.
struct effects {
    std::vector<std::pair<std::uint32_t, message>> send;
    std::optional<prepare> bring;  ///< shards into the buffers of this daemon's ranks; then brought()
    bool go = false;               ///< the ranks may begin with begun_from()
    bool fenced = false;           ///< processes of an older round must not save any more
    std::vector<shelf::id> gone;   ///< copies whose memory is free
    bool counted = false;          ///< a vote that has decided nothing: there is no more to keep than before
    bool forgot = false;           ///< the nodes of earlier launches
};

class agreement {
  public:
    /// A later generation than before, or nothing happens.
    effects open(const launch& l);
    effects receive(std::uint32_t from, const message& m);
    /// What nobody has answered is said once more.
    effects tick();

    /// At the first slot, once for a launch: the steps that are committed in storage, and what nodes outside
    /// of the assignment hold. Null where these were not asked: that holds for one attempt, and then for
    /// none.
    effects storage_holds(std::vector<copy_key> committed,
                          std::optional<word_outside> outside = word_outside{});
    /// What storage holds is known, and the nodes outside have to be asked (again): then outside_holds().
    bool asks_outside() const { return storage_ && coordinator_ && !coordinator_->knows_storage(); }
    effects outside_holds(std::optional<word_outside> outside) {
        return storage_ ? storage_holds(*storage_, std::move(outside)) : effects{};
    }
    /// Once all members have said what they hold: whether those outside may hold what they lack. Else they
    /// are asked as well, with which they end their launch, but not waited for.
    bool needs_outside() const;
    earlier_nodes& earlier() { return earlier_; }
    const earlier_nodes& earlier() const { return earlier_; }
    /// A step that has come to storage since: a later round of the launch may need it. Of older ones no more
    /// are there than `kept` with it, where that is not 0.
    void stored(const copy_key& key, std::size_t kept = 0);
    effects brought(const ballot& number, std::vector<std::uint32_t> failed);
    /// A daemon of the launch `later`, in which this one may have no part, asks what is held here. If that is
    /// indeed a later one, this launch is over here: until another is opened nothing of it is heard, said,
    /// committed or freed, for what is answered is rested on. True when that is news, and has to be kept
    /// before the answer.
    bool end_launch(std::uint64_t later);
    bool is_over() const { return over_; }
    /// Whether a word from `generation` that it needs nothing of what is held here is to be taken: not from a
    /// launch in which this daemon has a part, or which is over, as one knows here who was asked by a later
    /// one. A daemon that was stopped for long does not know that yet.
    bool may_be_left_by(std::uint64_t generation) const {
        return generation > last_round(launch_.generation) && generation >= first_round(ended_by_);
    }
    /// A process that has gone with this round was started anew and asks for its state.
    effects begin_again();
    /// The daemon was started again with fields(): work under way is forgotten, votes are counted and the
    /// others asked anew. `nonce` as in launch.
    void recall(std::uint64_t nonce);
    /// What must outlive the daemon before anybody hears of it, as shelf::fields.
    template <class Agreement, class F>
    static void fields(Agreement& a, F&& f) {
        f("launch", a.launch_);
        f("shelf", a.shelf_);
        f("member", a.member_);
        f("storage", a.storage_);
        f("saves", a.saves_);
        f("again", a.again_);
        f("over", a.over_);
        f("ended_by", a.ended_by_);
        f("group", a.launch_.group);
        f("earlier", a.earlier_);
    }

    /// A copy in this daemon's memory, its own ranks' or another node's.
    void add(const shelf::copy& c);
    void lose(shelf::id number) { shelf_.lose(number); }
    /// The copy's checksums stand.
    void checked(shelf::id number);
    /// The copy's rank votes, once: the shard is checked here, and at level replicated on its buddy, too.
    /// That holds for what the generation began from as well, whose second copies are made anew.
    effects safe(shelf::id number, level safety);
    /// The owner of a copy that is kept for him is told so: from now on it is promised.
    void promised(shelf::id number);
    /// The rank had no room to save this step.
    void skipped(std::uint32_t rank, std::uint64_t step);

    /// To whom this daemon's votes go. Any daemon may count: a commit is a fact about votes, whoever adds
    /// them up, so that two who count at once do no harm.
    void follow(std::uint32_t slot) { leader_ = slot; }

    std::uint32_t world() const { return launch_.world; }  ///< ranks
    std::uint32_t slots() const { return launch_.nodes; }
    std::uint32_t slot() const { return launch_.self; }  ///< this daemon's
    std::uint64_t generation() const { return launch_.generation; }
    bool has_begun() const { return member_.has_released(); }
    const std::optional<copy_key>& begun_from() const { return member_.released_with(); }
    std::optional<copy_key> committed(level safety) const { return shelf_.newest(safety); }
    /// Whether what was acknowledged rests on this launch's nodes alone, and nodes of former ones may be
    /// forgotten: not before a step of its own is as safe as any here can be. A commit in memory frees none
    /// that was replicated, and of that the second copies may be on former nodes still. On one node none of
    /// its own is, so that these are needed for as long as it is one.
    bool stands_alone() const;
    /// Nodes of former launches may let go of what they hold: that, or there was nothing to begin from, which
    /// everybody said who may have had something. Of a beginning from nothing beside one who was silent
    /// nobody knows what it has left behind.
    bool needs_no_former() const {
        return stands_alone() || (has_begun() && !begun_from() && member_.has_heard_all());
    }
    /// It is known besides that the launch went on after it had come to stand alone here, so that who had a
    /// part in those before may be forgotten. A daemon that was stopped for long hears of the steps that were
    /// on their way when its launch ended, and none beyond.
    bool has_gone_on_alone() const;
    const shelf& copies() const { return shelf_; }
    /// What this daemon has counted of the others' votes.
    const vote_counter& votes() const { return counter_; }
    /// Null where this daemon does not coordinate.
    const coordinator* coordinating() const { return coordinator_ ? &*coordinator_ : nullptr; }

  private:
    void say(effects& out, std::uint32_t to, body what) const;
    void enter(std::uint64_t generation, bool forgetful);
    void coordinate();
    void next_round(effects& out);
    void urge(effects& out) const;
    void carry_out(effects& out, std::uint32_t coordinator, member::orders what);
    void count(effects& out, std::uint32_t from, const vote& v);
    void apply(effects& out, const commit& c);
    void pass_over(effects& out, const copy_key& key);
    void cast(effects& out, std::uint32_t rank) const;
    void answer(effects& out, std::uint32_t from, const still_needed& asked) const;
    void free(effects& out, const let_go& said);
    /// As safe as a step of this launch can be.
    level safest() const { return launch_.nodes > 1 ? level::replicated : level::memory; }
    bool is_of_this_round(const copy_key& key) const;

    launch launch_;
    shelf shelf_;
    member member_;
    std::optional<coordinator> coordinator_;
    std::optional<std::vector<copy_key>> storage_;
    std::optional<word_outside> outside_;  // null: not asked
    earlier_nodes earlier_;
    vote_counter counter_;
    std::map<std::uint32_t, saved_steps> saves_;  ///< by rank
    std::uint32_t leader_ = 0;
    bool again_ = false;  // a rank waits for another round
    bool over_ = false;   // a later launch rests on what is held here
    std::uint64_t ended_by_ = 0;
    std::uint32_t commits_alone_ = 0;  // of this round, as safe as any here can be, in this life
};

}  // namespace banyan::ckpt::agreement
