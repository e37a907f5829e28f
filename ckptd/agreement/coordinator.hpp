// SPDX-License-Identifier: BSD-3-Clause
//
// The agreement on what a generation begins from, at the daemon of the assignment's first slot. It is that
// one and no other: the training cannot run without that node either (its rank 0 is the others' master).
// Pure: no clock, no socket; `due()` is asked for what is to be sent, at first and whenever an answer is
// late. One for each generation; not thread-safe.
//
// Everybody must answer before anything is chosen, and everybody must be prepared before anybody goes. So no
// rank begins with another state than the rest, whoever is cut off when.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "ckptd/agreement/messages.hpp"

namespace banyan::ckpt::agreement {

class coordinator {
  public:
    enum class phase : std::uint8_t {
        collecting,  ///< waits for inventories, or for what storage holds
        preparing,   ///< waits until all have brought their shards
        releasing,   ///< the ranks may go; waits until all have heard
        done,
        stale,  ///< some ranks may have gone, and one of the daemons does not know: only another round helps
        lost,   ///< there are checkpoints and none can be brought back: an error for people, not a beginning
                ///< from nothing
    };
    struct envelope {
        std::uint32_t to;
        body what;
    };

    /// `world` ranks on `slots` nodes. `nonce`: another one for each life of this daemon. `group`: as that of
    /// a launch.
    coordinator(std::uint32_t slots, std::uint32_t world, std::uint64_t nonce, std::uint32_t group = 0);

    /// What is committed in storage. Until it is known nothing is chosen: a directory that could not be
    /// looked at is not an empty one.
    /// `outside_asked`: nodes outside of the assignment were, or there are none. Else that holds for what the
    /// members have said in this attempt alone: the next one waits until it is said anew.
    void set_storage(std::vector<copy_key> committed, bool outside_asked = true);
    bool knows_storage() const { return storage_.has_value(); }
    /// Nodes outside of the assignment that may still hold copies, numbered from `slots` on: what they say
    /// only adds, in every attempt.
    void set_outside(word_outside word) { outside_ = std::move(word); }
    /// A step that somebody knows to be replicated is not there for every rank, and some node outside is
    /// silent, which may have the rest. Nothing older is chosen: they are asked again, and what storage holds
    /// is to be said with their answer.
    const std::optional<copy_key>& awaited() const { return awaited_; }
    void on(std::uint32_t from, const inventory& m);
    void on(std::uint32_t from, const prepared& m);
    void on(std::uint32_t from, const released& m);
    void on(std::uint32_t from, const outbid& m);

    /// To whom what is (still) to be said.
    std::vector<envelope> due() const;
    phase now() const { return phase_; }
    /// While this is the same, an answer that came in is no reason to ask the others once more: with many
    /// slots each answer would be followed by a question to each of the rest, and those by their answers.
    std::pair<ballot, phase> stage() const { return {ballot_, phase_}; }
    /// The newest checkpoint of which any node of the assignment holds anything, if it is there for every
    /// rank. Who took part in a launch has a part of all that was acknowledged in it, as long as nothing was
    /// found damaged or gone: here, or by a member that says so.
    std::optional<copy_key> newest_if_whole() const;
    /// Nodes of earlier launches, as the members have named them in this attempt.
    std::vector<node_address> former() const;
    /// Whom it waits for, ascending.
    std::vector<std::uint32_t> waits_for() const;
    /// With what the ranks go. Precondition: releasing or done.
    const choice& chosen() const { return choice_; }

  private:
    /// A step, a rank, and whose shard of the step the rank was to begin with: of all that may stand in for
    /// each other each is tried. By the rank too, since what one has refused may do for another.
    using attempted = std::tuple<copy_key, std::uint32_t, std::uint32_t>;

    void attempt(std::uint64_t number);
    void hear_of_replicated();
    void choose();
    /// Some shard of it was looked for in vain wherever it is said to be.
    bool is_spoilt(const choice& c) const;
    /// What the ranks of some daemon may have begun with already.
    std::optional<std::optional<copy_key>> forced() const;
    std::map<copy_key, choice> candidates() const;
    /// Of which somebody knows that it is replicated, and which is not whole, as nobody has given it up.
    std::optional<copy_key> missed(const std::set<copy_key>& whole) const;
    /// Of the ranks for which `c` has no holder, or none that gives it, another rank's shard.
    void stand_in(choice& c) const;
    /// What those outside know to be replicated, if it can take the place of what the members know.
    std::optional<copy_key> replicated_outside(const std::set<copy_key>& whole) const;

    std::uint32_t slots_, world_, group_;
    ballot ballot_;
    phase phase_ = phase::collecting;
    std::optional<std::vector<copy_key>> storage_;
    bool outside_asked_ = false;
    bool all_heard_ = false;  ///< when choice_ was made
    std::map<std::uint32_t, inventory> inventories_;
    word_outside outside_;
    std::optional<copy_key> awaited_;
    std::set<std::uint32_t> answered_;  ///< of preparing and releasing
    /// Could be brought from none of these holders, nor from storage. One that is heard of later may have it.
    std::map<attempted, std::set<std::uint32_t>> unavailable_;
    std::map<std::uint32_t, std::uint32_t> failed_at_;  ///< those ranks -> their slots
    choice choice_;
    /// What was said in any attempt: a daemon that has lost all since does not say it again, and it holds.
    std::set<copy_key> heard_replicated_;
    std::set<beginning> begun_;
    std::optional<copy_key> replicated_, replicated_outside_;
};

}  // namespace banyan::ckpt::agreement
