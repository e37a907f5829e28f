// SPDX-License-Identifier: BSD-3-Clause
//
// What the daemon knows of one job on its node: the assignment, the ranks' memory, the copies in it, votes
// and commits. Data and the rules that need neither clock nor network; daemon.hpp drives it, on one thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "ckptd/buffers/memory.hpp"
#include "ckptd/daemon/ledger.hpp"
#include "ckptd/daemon/process.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "ckptd/store/store.hpp"

namespace banyan::ckpt {

class async_event;
class async_lock;

/// One rank's shard of one checkpoint, in a buffer or in a replica's memory.
struct shard_copy {
    std::uint32_t rank = 0;
    copy_key key;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> chunks;  ///< checksums, computed once when the shard was sealed
    std::shared_ptr<shard_memory> memory;
    std::size_t offset = 0;
    int buffer = -1;  ///< in the rank's own memory, else -1
    std::uint64_t sequence = 0;
    bool checked = false;     ///< the checksums stand
    bool replicated = false;  ///< the buddy has it
    bool voted = false;
    bool pinned = false;                ///< being flushed
    std::atomic<bool> dropped = false;  ///< worker threads look at it too

    std::span<std::byte> data() const { return memory->part(offset, bytes); }
};
using copy_ptr = std::shared_ptr<shard_copy>;

struct rank_state {
    std::uint32_t rank = 0;
    std::shared_ptr<shard_memory> memory;
    std::uint32_t buffers = 0;
    std::uint64_t buffer_bytes = 0;
    std::uint64_t owner = 0;  ///< connection of the attached process, 0 = none
    std::shared_ptr<const banyan::ckpt::process> process;
    std::uint64_t generation = 0;  ///< in which it attached

    rank_memory_header& header() const { return *reinterpret_cast<rank_memory_header*>(memory->data()); }
};

/// A replica being received.
struct incoming_shard {
    copy_ptr copy;
    std::vector<bool> good;
};

struct restore_choice {
    std::optional<copy_key> key;                      ///< nothing: train from the beginning
    bool storage = false;                             ///< committed in storage
    std::vector<std::vector<std::uint32_t>> holders;  ///< rank -> slots whose nodes hold a checked copy
};

struct flush_state {
    copy_key key;
    std::vector<std::optional<shard_file>> files;
    std::uint32_t count = 0;
    bool failed = false;
    bool committing = false;
};

/// Written by worker threads too.
struct byte_counters {
    std::atomic<std::uint64_t> storage_written{0}, storage_read{0}, peer_sent{0}, peer_received{0},
        memory_restored{0};
    std::atomic<std::uint64_t> seals{0}, commits{0}, torn{0}, damaged{0}, refused{0}, skipped{0}, flushes{0},
        flush_failures{0}, flushes_skipped{0};
};

/// What goes wrong, said once for each thing that it is about (a directory, a node) until that works again.
struct user_warnings {
    std::string newest;  ///< for status
    std::uint32_t count = 0;
    std::set<std::string> reported;                           ///< what this node has told the leader
    std::set<std::string> told;                               ///< at the leader: what the user has been told
    std::vector<std::pair<std::string, std::string>> untold;  ///< (about, text) for which no rank was there

    static constexpr auto votes = "votes";  ///< about steps that do not become complete

    void works_again(const std::string& about) {
        reported.erase(about);
        told.erase(about);
    }
    /// A new step of the job begins: all but `lasting` may be told anew.
    void new_step(const std::string& lasting) {
        const auto over = [&](const auto& about) { return about != lasting; };
        std::erase_if(reported, over);
        std::erase_if(told, over);
    }
};

struct session {
    session_request request;                                 ///< `nodes` is the assignment in force
    std::unordered_map<std::string, std::string> addresses;  ///< every node and spare
    storage_user user;
    std::uint64_t generation = 0;       ///< messages of an older one are refused
    std::uint64_t assigned = 0;         ///< generation of the assignment
    std::optional<std::uint32_t> slot;  ///< ours; nothing for a spare
    std::set<std::uint32_t> finished;   ///< ranks that ended of their own will in this generation
    bool detached = false;
    bool closed = false;
    std::chrono::steady_clock::time_point lease_end{};

    std::map<std::uint32_t, rank_state> ranks;
    std::vector<copy_ptr> copies;
    std::map<std::uint32_t, std::vector<std::shared_ptr<shard_memory>>> free_replicas;
    std::map<std::uint32_t, std::uint32_t> incoming;  ///< rank -> transfers under way

    std::optional<copy_key> committed, durable;
    bool committed_replicated = false;
    vote_ledger votes;
    std::optional<flush_state> flush;
    bool flushing = false;
    std::chrono::steady_clock::time_point flushing_since{};
    std::set<std::pair<std::uint32_t, std::size_t>> in_checksum;  ///< (rank, buffer) under way
    std::uint64_t flush_epoch = 0;         ///< step / request.flush of the newest flush begun
    std::optional<restore_choice> choice;  ///< of this generation
    std::uint32_t pending = 0;             ///< sealed buffers on their way into safety
    /// Since when shards wait for those of other ranks; a commit begins anew. At the leader only.
    std::optional<std::chrono::steady_clock::time_point> incomplete_since;
    user_warnings warnings;
    byte_counters bytes;

    std::shared_ptr<async_event> changed;
    std::shared_ptr<async_lock> memory_lock, choice_lock;

    std::uint64_t job() const { return request.job; }
    const std::string& self() const { return request.self; }
    /// The ranks that this node runs now.
    const std::vector<std::uint32_t>& own_ranks() const;
    /// All ranks of this node have said that they need nothing any more.
    bool all_finished() const;
    /// A new assignment: names in slot order.
    void assign(const std::vector<std::string>& names, const std::vector<std::uint32_t>& buddies);
    /// Forgets what belongs to an older generation; the copies stay.
    void enter_generation(std::uint64_t g);

    copy_ptr find_copy(std::uint32_t rank, const copy_key& key) const;
    void drop_copy(const copy_ptr& copy);
    /// After a commit or a choice: lets go of what is older (and, with `only`, of everything else).
    void release(bool only);
    /// Frees ranks that moved away and hold nothing.
    void forget_ranks();
    /// Buffers for a rank that found none free: gives up what can no longer become complete soonest.
    void unstick(std::uint32_t rank);
    void publish();
    /// Shows `text` to one local rank, once for each `about`; the first rank that attaches gets it when none
    /// has.
    void tell_user(const std::string& about, const std::string& text);
    /// What waits for a rank, as one line; nothing waits after it.
    std::string take_untold();
    std::uint64_t memory_bytes() const;
};
using session_ptr = std::shared_ptr<session>;

/// One session for `status`.
nlohmann::json describe(const session& s);
nlohmann::json describe_key(const std::optional<copy_key>& key);

}  // namespace banyan::ckpt
