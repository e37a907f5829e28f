// SPDX-License-Identifier: BSD-3-Clause
//
// Which copies a daemon holds of one job, and the one rule of what may go. Plain data; the caller frees the
// memory of what the shelf lets go of.
//
// The rule. A vote is a promise, and holds until what it could have led to is overtaken: a copy that was
// voted for stays until a newer step is committed at the level of the vote, or until it is known that its own
// step came to less (a rank passed it over; some rank's buddy was away) and a newer one has reached that. So
// a commit that one lost node can undo frees nothing that could stand in for it. A rank without a free buffer
// skips its save; every copy gets its vote and every step its end in bounded time, so that it finds one
// again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ckptd/agreement/messages.hpp"

namespace banyan::ckpt::agreement {

class shelf {
  public:
    using id = std::uint64_t;

    /// One rank's shard of one checkpoint in this daemon's memory.
    struct copy {
        id number = 0;  ///< the caller's name for it
        held what;
        bool own = true;       ///< in the rank's own buffer; else kept for another node's rank
        bool checked = false;  ///< its checksums stand
        /// The rank has voted for it; of a copy for another node's rank: its owner was told that it is here.
        std::optional<level> voted{};
    };

    void add(const copy& c) { copies_.push_back(c); }
    /// Null when there is none.
    copy* find(id number);
    const copy* find(const held& what, bool own) const;
    const std::vector<copy>& copies() const { return copies_; }
    std::vector<held> checked() const;

    void note_commit(const copy_key& key, level safety);
    /// Some rank has no shard of it: it will never be committed.
    void note_passed_over(const copy_key& key);
    /// All ranks begin `generation` from `key`: newer checkpoints of older generations are dead. It stays
    /// until it is known how far it has come: it may have been replicated, and who knew that may be gone.
    /// `replicated`: the newest commit at that level that anybody has heard of, and that still counts.
    void note_release(const std::optional<copy_key>& key, const std::optional<copy_key>& replicated,
                      std::uint64_t generation);

    /// The newest commit at this level or a better one.
    std::optional<copy_key> newest(level safety) const;
    /// The newest in which there was a part here that somebody may rest on, though it may be lost.
    std::optional<copy_key> newest_part() const;
    beginning begun() const { return {generation_, base_}; }
    bool may_go(const copy& c) const;
    /// Removes what may go and returns it.
    std::vector<id> sweep();
    /// The copy is gone before its time (damaged, overwritten).
    void lose(id number);
    /// Whether a copy that is kept for one of our ranks elsewhere may still be of use.
    bool needs_elsewhere(const held& what) const;

    /// All that it remembers, as (name, value) for each: whoever keeps it over a restart reads and writes
    /// these.
    template <class Shelf, class F>
    static void fields(Shelf& s, F&& f) {
        f("copies", s.copies_);
        f("memory", s.memory_);
        f("replicated", s.replicated_);
        f("base", s.base_);
        f("came_to_less", s.came_to_less_);
        f("lost", s.lost_);
        f("generation", s.generation_);
    }

  private:
    std::vector<copy> copies_;
    std::optional<copy_key> memory_, replicated_, base_;
    /// Steps that came to less than replicated: committed in memory only (true), or not at all.
    std::map<copy_key, bool> came_to_less_;
    std::set<held> lost_;           ///< of this generation: promised, and now elsewhere only
    std::uint64_t generation_ = 0;  ///< of the last release
};

}  // namespace banyan::ckpt::agreement
