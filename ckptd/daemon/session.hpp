// SPDX-License-Identifier: BSD-3-Clause
//
// What the daemon knows of one job on its node: the assignment, the ranks' memory, the copies in it, how far
// they have come. Data and the rules that need neither clock nor network; the parts of the daemon
// (daemon.hpp) drive it, on one thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "ckptd/buffers/memory.hpp"
#include "ckptd/daemon/job_agreement.hpp"
#include "ckptd/daemon/patience.hpp"
#include "ckptd/daemon/process.hpp"
#include "ckptd/daemon/standing.hpp"
#include "ckptd/daemon/step_places.hpp"
#include "ckptd/keeper/ledger.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "ckptd/store/store.hpp"
#include "common/clock.hpp"
#include "common/log.hpp"

namespace banyan::ckpt {

class async_event;
class async_lock;
class process_watch;
struct local_client;

/// One rank's shard of one checkpoint, in a buffer or in a replica's memory.
struct shard_copy {
    agreement::shelf::id number = 0;  ///< its name in the agreement
    bool own = true;                  ///< of a rank of this node; else kept for another node
    std::uint32_t rank = 0;
    copy_key key;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> chunks;  ///< checksums, computed once when the shard was sealed
    std::shared_ptr<shard_memory> memory;
    std::size_t offset = 0;
    int buffer = -1;  ///< in the rank's own memory, else -1
    std::uint64_t sequence = 0;
    bool checked = false;               ///< the checksums stand
    bool handled = false;               ///< it has been offered to the buddy
    bool held_up = false;               ///< the buddy is later than it usually is
    clock::time_point waits_since{};    ///< for other nodes
    bool pinned = false;                ///< being flushed
    bool overtaken = false;             ///< nothing needs it but who has pinned it
    std::atomic<bool> dropped = false;  ///< worker threads look at it too

    std::span<std::byte> data() const { return memory->part(offset, bytes); }
};
using copy_ptr = std::shared_ptr<shard_copy>;
/// Its rank has not begun to write the next step into its place: before it says so here, it may.
bool is_as_sealed(const shard_copy& c);

/// In place of a connection: a process that lived when the daemon before this one ended, and has not come
/// back to this one yet.
constexpr std::uint64_t former_owner = UINT64_MAX;

/// What a rank's buddy has taken of it.
struct taken_copies {
    std::string node;
    std::uint32_t count = 0;
    std::uint64_t largest = 0;
};

/// For other nodes; less where it usually takes less.
constexpr std::chrono::milliseconds longest_wait{2000};
/// For the others' votes, by the usual time from a vote to the commit.
constexpr patience::bounds commits_within{8, std::chrono::milliseconds(250), longest_wait};

struct rank_state {
    std::shared_ptr<shard_memory> memory;
    std::uint32_t buffers = 0;
    std::uint64_t buffer_bytes = 0;
    std::uint64_t owner = 0;  ///< connection of the attached process, 0 = none
    std::shared_ptr<const banyan::ckpt::process> process;
    /// The newest process, also when it has hung up, and the generation in which it attached or was given its
    /// state: it belongs to that one until it asks for its state again.
    std::shared_ptr<const banyan::ckpt::process> last;
    std::uint64_t generation = 0;
    std::weak_ptr<local_client> client;    ///< the connection over which that one came last
    std::shared_ptr<process_watch> watch;  ///< of that one
    /// The process that has ended its use of the library: its end is none of the training's.
    std::shared_ptr<const banyan::ckpt::process> finalized;
    bool waits = false;  ///< the process waits for its state: it writes to no buffer
    /// Of this generation: the process that was given its state or has saved, and whether it has saved.
    std::shared_ptr<const banyan::ckpt::process> began;
    bool saved = false;
    std::optional<copy_key> newest;  ///< that it has sealed, as far as this life of the daemon knows
    bool again = false;  ///< it asks for its state anew: the round that runs is not its own any more
    std::string source;  ///< where its state came from in this launch: local, peer, storage
    /// The step in storage is of so many ranks, not the launch's: it has no shard of its own, and its process
    /// reads what it needs by name. 0: it has one.
    std::uint32_t saved_by = 0;
    taken_copies at_buddy;

    rank_memory_header& header() const { return *reinterpret_cast<rank_memory_header*>(memory->data()); }
};

/// Of one rank of another node. With fewer, steps can wait for each other (test/simulator).
constexpr std::size_t replicas_per_rank = 3;

/// A replica being received.
struct incoming_shard {
    copy_ptr copy;
    std::vector<bool> good;
};

struct arrival {
    std::string from;              ///< the sending node
    std::uint64_t generation = 0;  ///< of the sender
    std::uint64_t turn = 0;        ///< tells two from the same node apart
    std::function<void()> end;     ///< gives its place up
};

/// The flush under way, at the leader.
struct flush_state {
    copy_key key;
    std::string folder;
    std::vector<std::optional<shard_file>> files;
    std::vector<std::string> digests;  ///< of the ranks' parts of tensors (store/alike.hpp), by rank
    std::map<std::string, std::uint32_t> alike;  ///< as the flush before has shown: all who write go by it
    std::uint32_t count = 0;
    std::set<std::string> answered;    ///< nodes, with files or with why there are none
    std::set<std::uint32_t> replaced;  ///< slots for which their buddies have been told to write, lately
    std::string failed;                ///< why
    bool overtaken = false;            ///< some node had a newer step by then: no failure
};

/// What is done at once where the job may not live on (emergencies.hpp).
struct rescue {
    bool wanted = false, running = false;
    clock::time_point by_word{};  ///< the newest that was not for a rank's death
};

/// What this node writes in a flush: its own ranks' shards, or those of another slot.
struct flush_part {
    copy_key key;           ///< of the newest flush that it was told of
    std::string folder;     ///< of that one
    nlohmann::json report;  ///< on its part in it, when it is done
    bool writing = false;
};

/// Storage, as flushes get on with it.
struct flush_progress {
    std::optional<flush_state> now;            ///< at the leader
    std::uint64_t led_for = 0;                 ///< generation for which a flush is being led here; 0 = none
    std::optional<std::uint64_t> newest_turn;  ///< of the newest flush begun here, in this generation
    /// The first one that is due: behind step / request.flush of the newest flush begun.
    std::uint64_t next_turn = 0;
    std::optional<std::uint64_t> wanted;  ///< a step that somebody asked for out of turn
    /// At the leader: the lowest rank of several that held the same parts of tensors in the last flush, by
    /// their digest.
    std::map<std::string, std::uint32_t> alike;
    std::set<std::uint32_t> hung;  ///< slots whose storage was silent in the last flush of this launch
    flush_part own;
    std::map<std::uint32_t, flush_part> for_others;  ///< by slot, which this node has copies of
    bool writing() const {
        return own.writing || std::any_of(for_others.begin(), for_others.end(),
                                          [](const auto& part) { return part.second.writing; });
    }
};

/// What the first slot's daemon finds in storage before a launch begins; `chosen` is known to all.
struct storage_view {
    std::uint64_t look = 0;    ///< for this launch; another one makes it void
    std::uint64_t looked = 0;  ///< that which has ended; another than `look` while one is under way
    std::string problem;       ///< why it is not known yet what storage holds
    std::optional<std::uint64_t> newest;  ///< step that is committed there
    std::optional<copy_key> chosen;       ///< what the newest attempt brings, where it is committed there
    std::optional<error> refused;         ///< why nothing that storage holds may be used
};

/// Why ranks do not get the state that they are to begin with, though it is there.
struct hindrance {
    enum class of {
        memory,   ///< there is no room for it
        storage,  ///< which cannot be read
        holder,   ///< a node of an earlier launch, which is silent
        answer,   ///< nothing but that storage has not answered yet
    };
    of what = of::memory;
    std::string why;
    clock::time_point since{};
};

/// What keeps a launch from beginning beside nodes that do not answer.
struct hindrances {
    std::optional<hindrance> here;
    std::map<std::uint32_t, hindrance> at;         ///< by slot; at the first one, in its newest attempt
    std::map<std::uint32_t, std::size_t> read_to;  ///< by rank; chunks that storage has given in this launch
    agreement::ballot attempt{};                   ///< that one
    /// At the first slot: what has to be known before anything is chosen.
    std::optional<hindrance> choice;
    /// The first slot's daemon has given the beginning up: all ranks get the same answer.
    std::string given_up;
    void note(hindrance::of what, const std::string& why) { note(here, what, why); }
    /// It is the same one for as long as it is not over, whatever is said of it.
    static void note(std::optional<hindrance>& at, hindrance::of what, const std::string& why) {
        if (!at) at = {what, why, clock::now()};
        at->what = what;
        at->why = why;
    }
    void there_is_room() {
        if (here && here->what == hindrance::of::memory) here.reset();
    }
    /// Storage has given a chunk of the rank's shard, which is waited for anew, unless it gave that before.
    void gone_on(std::uint32_t rank, std::size_t chunk, const std::string& reads) {
        auto& to = read_to[rank];
        if (chunk < to) return;
        to = chunk + 1;
        here = {hindrance::of::answer, reads, clock::now()};
    }
    /// In the first slot's daemon's attempt `now`: those of one before count from the beginning again.
    void enter(const agreement::ballot& now) {
        if (std::exchange(attempt, now) != now) at.clear();
    }
};

/// The oldest step that lacks votes, and since when. At the leader.
struct slow_step {
    std::optional<copy_key> step;
    clock::time_point since{};
};

/// Ranks that keep the others waiting, as the leader has found and says again while it lasts.
struct hang_view {
    std::optional<hang> found;
    clock::time_point until{};
    clock::time_point next_look{};  ///< at the leader
    bool looking = false;
};

/// What a daemon that takes over has to know, as it was written last.
struct kept_record {
    std::unique_ptr<keeper::ledger> where;
    std::vector<std::uint8_t> text;
    session_request request;  ///< the one that request_text is of
    std::vector<std::uint8_t> request_text;
};

/// The job's claim to its directory, at the leader.
struct directory_hold {
    std::optional<claim> held;
    std::uint64_t generation = 0;  ///< of what follows
    std::optional<error> refused;  ///< for the whole generation
    bool lost = false;             ///< it was ours before
    bool watching = false;
    std::shared_ptr<async_lock> lock;
};

/// Written by worker threads too.
struct byte_counters {
    std::atomic<std::uint64_t> storage_written{0}, storage_read{0}, peer_sent{0}, peer_received{0},
        memory_restored{0};
    std::atomic<std::uint64_t> seals{0}, commits{0}, torn{0}, refused{0}, skipped{0}, deaths{0}, flushes{0},
        flush_failures{0}, flushes_skipped{0};
    /// By where it was found: a copy in this node's memory, bytes from another node, which its own keys
    /// vouch for, and a file.
    std::atomic<std::uint64_t> damaged_here{0}, damaged_on_arrival{0}, damaged_in_storage{0};
    std::uint64_t damaged() const { return damaged_here + damaged_on_arrival + damaged_in_storage; }
};

/// What goes wrong, said once for each thing that it is about (a directory, a node) until that works again.
struct user_warnings {
    std::string newest;  ///< for status; at most `longest`
    std::uint32_t count = 0;
    std::set<std::string> reported;                           ///< what this node has told the leader
    std::set<std::string> told;                               ///< at the leader: what the user has been told
    std::vector<std::pair<std::string, std::string>> untold;  ///< (about, text) for which no rank was there

    /// How often the log and the fault daemon's agent hear of this job, whatever others have to say.
    log_limiter lines{std::chrono::seconds(60), 32}, news{std::chrono::seconds(60)};

    static constexpr std::size_t longest = 1024;  ///< of what is said: it may hold what a user has written
    static constexpr auto votes = "votes";        ///< about steps that do not become complete
    static constexpr auto launch = "launch";      ///< about a launch that does not begin

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

/// What is known of the job's earlier launches beside the rules, which know whose nodes may keep what it has
/// to begin from (agreement::earlier_nodes).
struct former_launches {
    std::set<std::string> states;  ///< that such nodes hold, of a job's own session
    /// What they have said since they were asked, by their names. It stands: with it their own launch ended.
    std::map<std::string, agreement::inventory> heard;
    std::vector<std::string> silent;  ///< of those that were asked last
    clock::time_point asked{};

    /// Name and address of nodes that had a part in the job, and are to be told that they have none any more.
    std::map<std::string, std::string> left;
    /// What such a node has said of itself.
    struct word {
        std::optional<std::set<std::string>> keeps;  ///< states of which it has copies; null: not asked yet
        clock::time_point again{};                   ///< it is not asked or told before
    };
    std::map<std::string, word> said;  ///< by those in `left`
    bool telling = false;              ///< it is under way
    bool unread = false;               ///< the directory's claim, which may name others

    static constexpr std::size_t most = agreement::most_outside;
    void leaves(const std::string& name, const std::string& addr) {
        if (left.size() < most) left.try_emplace(name, addr);
    }
    /// It is in the job again, or holds nothing of it.
    void forget_departure(const std::string& name) {
        left.erase(name);
        said.erase(name);
    }
};

/// Who holds which slot in a launch.
struct assignment {
    std::vector<std::string> nodes;      ///< in slot order
    std::vector<std::uint32_t> buddies;  ///< empty: as the session's
};

/// The one in force, with the session's buddies.
assignment assignment_of(const session_request& request);
/// All ranks that the job may come to have.
std::uint32_t most_ranks(const session_request& request);
/// The ranks of this node in an assignment.
std::vector<std::uint32_t> ranks_in(const session_request& request, const assignment& a);
/// The ranks of other nodes whose copies this node keeps in an assignment.
std::vector<std::uint32_t> ranks_kept_in(const session_request& request, const assignment& a);

struct session {
    /// Of a state that the job's processes keep besides the one without a name; empty: the job's own session,
    /// which alone has `states`. docs/decisions/017.
    std::string state;
    std::map<std::string, std::shared_ptr<session>> states;
    session_request request;                                 ///< `nodes` is the assignment in force
    std::unordered_map<std::string, std::string> addresses;  ///< every node and spare
    storage_user user;
    std::uint64_t generation = 0;       ///< that of the agreement: what is of an older one is refused
    std::optional<std::uint32_t> slot;  ///< ours; nothing for a spare
    /// The assignments of launches that may come, by their generations. One of them comes when a process of
    /// it asks for its rank: what a step that no such process belongs to would change is never in force.
    std::map<std::uint64_t, assignment> announced;
    former_launches former;
    std::set<std::uint32_t> finished;  ///< ranks that ended of their own will in this generation
    bool detached = false;
    bool closed = false;
    bool fresh = false;         ///< no request to open it has been granted yet
    std::uint32_t opening = 0;  ///< requests to open it that wait for its memory
    bool ending = false;        ///< detached, and what storage lacks is on its way there
    std::uint64_t endings = 0;  ///< how often that has begun
    clock::time_point lease_end{};
    clock::time_point heard{};       ///< of the job: from its processes, slurmd, or its other daemons
    clock::time_point kept_until{};  ///< while it is ending: from others that need memory

    std::map<std::uint32_t, rank_state> ranks;
    std::vector<copy_ptr> copies;
    std::map<std::uint32_t, std::vector<std::shared_ptr<shard_memory>>> free_replicas;
    std::set<std::uint32_t> expected;           ///< ranks for whose first copy memory is being made
    std::map<std::uint32_t, arrival> arriving;  ///< by rank: the copy for another node on its way here
    /// Of copies for other nodes: while one is on its way here it is in no list.
    std::vector<std::weak_ptr<shard_memory>> replica_memory;
    std::uint64_t bytes_in_the_making = 0;  ///< of memory that is not in any list yet

    std::optional<copy_key> committed, durable;
    bool committed_replicated = false;
    std::shared_ptr<job_agreement> agreed;
    directory_hold hold;
    flush_progress flush;
    rescue saving;
    storage_view storage;
    hindrances hindered;
    slow_step incomplete;
    hang_view hung;
    kept_record remembered;
    clock::time_point flushing_since{};
    std::set<std::pair<std::uint32_t, std::size_t>> in_checksum;  ///< (rank, buffer) under way
    clock::time_point launched{};
    std::uint64_t ticks = 0;
    std::optional<step_places> places;          ///< as they were asked for last
    std::optional<agreement::ballot> bringing;  ///< the newest attempt for which shards are brought
    bool stalled = false;                       ///< saves wait for other nodes, and will for long
    patience commits;                           ///< from a rank's vote to its step's commit
    std::uint32_t pending = 0;                  ///< sealed buffers on their way into safety
    user_warnings warnings;
    std::uint64_t seals_wanted = 0;  ///< how often somebody has asked that the ranks save
    byte_counters bytes;

    std::shared_ptr<async_event> changed;
    std::shared_ptr<async_lock> memory_lock, launch_lock, bring_lock;

    /// Whoever waits for something of this job looks again.
    void notify();
    std::uint64_t job() const { return request.job; }
    const std::string& self() const { return request.self; }
    /// The ranks that this node runs now.
    const std::vector<std::uint32_t>& own_ranks() const;
    /// All ranks of this node have said that they need nothing any more.
    bool all_finished() const;
    void assign(const assignment& a);
    /// Whether there is memory of a copy of this rank of another node, in use or not, or being made.
    bool has_replica_memory(std::uint32_t rank) const;
    /// The slot of a node in the assignment in force.
    std::optional<std::uint32_t> slot_of(const std::string& node) const;
    /// Forgets what belongs to an older generation; the copies stay.
    void enter_generation(std::uint64_t g, bool new_launch);

    /// A checked copy; one that is not overtaken before others, then one in a rank's buffer.
    copy_ptr find_copy(std::uint32_t rank, const copy_key& key) const;
    copy_ptr find_copy(agreement::shelf::id number) const;
    /// The copy in this buffer of the rank's memory, if any.
    copy_ptr copy_in(const rank_state& r, std::size_t buffer) const;
    /// A buffer of the rank in which no copy lies, and that `r`'s process may not take.
    std::optional<std::size_t> spare_buffer(const rank_state& r) const;
    /// The copy is of no use any more: its memory is free, unless it is pinned.
    void drop_copy(const copy_ptr& copy);
    /// The same before its time, so that the agreement does not count on it.
    void lose_copy(const copy_ptr& copy);
    void unpin(const copy_ptr& copy);
    /// The rank may use the buffer again.
    void free_buffer(rank_state& r, std::size_t buffer, std::uint64_t sequence);
    /// Frees ranks that moved away and hold nothing.
    void forget_ranks();
    void publish();
    /// A sign of life for the processes of this node's ranks.
    void beat();
    /// Whether copies of ranks of this node have waited for other nodes for longer than such copies usually
    /// do, or than `longest`.
    bool waits_for_others(clock::duration longest) const;
    /// Shows `text` to one local rank, once for each `about`; the first rank that attaches gets it when none
    /// has.
    void tell_user(const std::string& about, const std::string& text);
    /// What waits for a rank that has read the warning before it.
    void tell_untold();
    /// What waits for a rank, as one line; nothing waits after it.
    std::string take_untold();
    /// All that the job has here, what is being made for it included.
    std::uint64_t memory_bytes() const;
};
using session_ptr = std::shared_ptr<session>;

/// How many descriptors it takes here, or at the keeper.
std::size_t descriptors_of(const session& s);

/// Steps by which storage is behind memory; 0 where nothing is flushed.
std::uint64_t durable_lag(const session& s);

/// Why a step that was sealed here has not become complete, as far as this node knows.
std::string lacking_in_words(const session& s, const copy_key& key);
/// Storage has the newest complete step, or nothing of this job is to come there.
bool is_stored(const session& s);
/// The job's own session and those of its states.
std::vector<session_ptr> with_states(const session_ptr& job);
/// The job, and its state where that has a name, in words.
std::string in_words(const session& s);
/// "rank 2 on n02 hangs: ..."; no more than eight of them by their numbers.
std::string in_words(const session& s, const hang& what);
/// A holder as `c` counts them; nothing when it is not known.
std::optional<session_node> holder_of(const session& s, const agreement::choice& c, std::uint32_t number);
/// One session for `status`.
nlohmann::json describe(const session& s);
nlohmann::json describe_key(const std::optional<copy_key>& key);

}  // namespace banyan::ckpt
