// SPDX-License-Identifier: BSD-3-Clause
//
// What the daemons of a job say to each other about its checkpoints. Plain data: no socket, no clock. The
// rules are in docs/decisions/010.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ckptd/agreement/key.hpp"

namespace banyan::ckpt::agreement {

/// How safe a checkpoint is in memory. Of a job on one node, or without another node for its copies, nothing
/// ever reaches `replicated`.
enum class level : std::uint8_t {
    memory,      ///< every rank's shard is checked on one node
    replicated,  ///< and on a second one
};

/// An attempt of the coordinator to end a round. A later attempt has the higher number; `nonce` tells those
/// of a coordinator that was started again from those of the one before it.
struct ballot {
    std::uint64_t number = 0;
    std::uint64_t nonce = 0;
    auto operator<=>(const ballot&) const = default;
};

/// A checked shard in a daemon's memory.
struct held {
    copy_key key;
    std::uint32_t rank = 0;
    auto operator<=>(const held&) const = default;
};

/// Nodes of earlier launches that are known or asked at most.
constexpr std::size_t most_outside = 4096;

/// A node as those who drive the rules find it; the rules do not look into it.
struct node_address {
    std::string name, addr;
    auto operator<=>(const node_address&) const = default;
};

/// What all ranks of a generation begin from.
struct choice {
    std::optional<copy_key> key;  ///< nothing: from the beginning
    bool storage = false;         ///< the step is committed in storage
    /// rank -> slots whose daemon holds its shard; from the number of slots on, those of `outside`
    std::vector<std::vector<std::uint32_t>> holders;
    /// Nodes of an earlier launch that were asked. They go with the choice: numbers of another list would
    /// name other nodes.
    std::vector<node_address> outside{};
    /// Ranks that begin with another rank's shard, since nobody gives one of their own: with that of a rank
    /// whose state is the same (launch::group). `holders` are that one's.
    std::map<std::uint32_t, std::uint32_t> instead{};
    /// All shards of it that somebody holds, by the rank that saved them, of which there may be more now or
    /// fewer: who reads by name asks the coordinator, and nobody is sent this.
    std::map<std::uint32_t, std::vector<std::uint32_t>> saved{};

    /// Whose shard `rank` begins with.
    std::uint32_t source_of(std::uint32_t rank) const {
        const auto at = instead.find(rank);
        return at == instead.end() ? rank : at->second;
    }
};

/// Coordinator to all: promise to obey no lower ballot, and tell what you hold.
struct collect {
    ballot number;
};

/// What all ranks began a round from. Newer checkpoints of older rounds are dead from then on.
struct beginning {
    std::uint64_t generation = 0;  ///< 0: of none yet
    std::optional<copy_key> key{};
    auto operator<=>(const beginning&) const = default;
    bool overtakes(const copy_key& other) const {
        return other.generation < generation && std::optional(other) > key;
    }
};

struct inventory {
    ballot number;
    std::uint64_t life = 0;  ///< of the daemon; its next one may know less
    std::vector<held> copies;
    std::optional<ballot> accepted;  ///< of `key`
    std::optional<copy_key> key;     ///< that this daemon's ranks have in their buffers: ready to go, or gone
    std::optional<copy_key> replicated;  ///< the newest commit at that level that this daemon has heard of
    /// This daemon was started after the generation and has kept nothing: it may have accepted what it does
    /// not know of.
    bool forgetful = false;
    /// The newest checkpoint in which it had a part that was whole, or may have been, though none is left.
    std::optional<copy_key> had{};
    /// Nodes of earlier launches that it knows of.
    std::vector<node_address> former{};
    beginning begun{};  ///< the newest that it has taken part in
};

/// What a node outside of the assignment has answered: its copies, and what it knows to be replicated.
struct holding {
    node_address where;
    inventory has;
};

/// What the nodes outside of the assignment have said that may hold something of the job.
struct word_outside {
    std::vector<holding> said;
    bool some_are_silent = false;  ///< of those that are known
    bool all_are_known = true;     ///< nobody else may hold anything
    /// Nothing of it was needed, so that nobody was waited for: the next attempt asks anew.
    bool in_haste = false;
    bool is_all() const { return !some_are_silent && all_are_known; }
};

/// Coordinator to all: bring and check your ranks' shards of this checkpoint.
struct prepare {
    ballot number;
    choice what;
    std::uint64_t life = 0;  ///< of the inventory that the receiver has sent
};

struct prepared {
    ballot number;
    /// Ranks whose shard is damaged or gone wherever it was. A holder that does not answer is waited for: its
    /// silence says nothing about what it holds.
    std::vector<std::uint32_t> failed;
};

/// Coordinator to all, when all are prepared: let your ranks go.
struct release {
    ballot number;
    std::optional<copy_key> key;
    /// The newest commit at that level that anybody has heard of, and that still counts.
    std::optional<copy_key> replicated;
    /// When this was chosen everybody had answered who may hold anything of the job. Where all begin from
    /// nothing, there was nothing then.
    bool all_heard = false;
};

struct released {
    ballot number;
};

/// A member to the coordinator: I have promised this ballot to another attempt of yours.
struct outbid {
    ballot promised;
};

/// A member to the coordinator: a process that had gone asks for its state once more (its launcher has
/// started it anew within the step). A new round begins, for all ranks.
struct again {
    bool forgetful = false;  ///< the sender's daemon does not know which round is the last
};

/// A member to whom it takes for the leader, for one of its ranks: of the steps of this generation from
/// `first` on and below `end` I keep these, checked, and have or will have no other.
struct vote {
    struct one {
        copy_key key;
        level safety = level::memory;  ///< final: what is voted for in memory is not replicated later
        bool heard = false;            ///< its commit, at the highest level: there is no more to say of it
    };
    std::uint32_t rank = 0;
    std::vector<one> kept;
    std::uint64_t first = 0, end = 0;
};

/// The leader to all: every rank has voted, and no more than this will come of it.
struct commit {
    copy_key key;
    level safety = level::memory;
};

/// The leader to all: some rank has no shard of this step and never will.
struct passed_over {
    copy_key key;
};

/// Whoever keeps a copy for another node's rank, to that node: is it still of use?
struct still_needed {
    held what;
};

/// The answer, where it is not: what it could have led to is overtaken.
struct let_go {
    held what;
};

using body = std::variant<collect, inventory, prepare, prepared, release, released, outbid, again, vote,
                          commit, passed_over, still_needed, let_go>;

/// `generation` is the sender's; the receiver refuses an older one.
struct message {
    std::uint64_t generation = 0;
    body what;
};

}  // namespace banyan::ckpt::agreement
