// SPDX-License-Identifier: BSD-3-Clause
//
// What ckptd understands on its Unix socket, as frames of common/wire, and blocking helpers for those who
// drive it (the SPANK plugin, the fault daemon, the tools). The rank's own messages (attach, sealed, restore,
// finalize) are spoken by libbanyan_ckpt alone. Light on purpose: no Asio, no JSON in the header. Every
// helper connects, asks once and closes; `timeout` covers all of it. Link banyan_ckpt_protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"

namespace banyan::ckpt {

/// Frame types on the Unix socket. In brackets: who may send it.
enum class message : std::uint16_t {
    reply = 1,            ///< the answer to any request; metadata with "error" is a refusal
    session_open = 0x10,  ///< [root] open a job's session or renew it after a requeue
    step_open,            ///< [root] the node of every slot for a step; raises the generation
    session_detach,       ///< [root] the job left this node: start the lease
    session_close,        ///< [root, owner] free the memory now
    attach,               ///< [owner] a rank asks for its memory (the reply carries the memfd)
    sealed,               ///< [attached rank, one way] a buffer is complete
    skipped,              ///< [attached rank, one way] no buffer came free in time for this step
    restore,              ///< [attached rank] put the newest complete step into a buffer
    finalize,             ///< [attached rank] wait for what is under way
    seal_now,             ///< [root] bring what is sealed into safety and say how far it got
    status,               ///< [anyone] sessions, steps, bytes; a page of those whose jobs are below "before"
    attach_part,          ///< [attached rank] one more file of its memory, which has grown
    attach_state,         ///< [owner] as attach, for the state that "state" names
    given_up,             ///< [owner] banyan-run does not start the job's step again: for the fault daemon
    look,                 ///< [attached rank] how long any rank's shard is, and its checksums
    read,                 ///< [attached rank] a chunk of it, as the reply's body
    milestone,            ///< [attached rank] give a step a name by which it stays in storage
};

/// Path that stands in [ckptd] socket of banyan.conf, with %n replaced by the node's name.
std::string socket_path(const std::string& configured, const std::string& node);

/// One slot of the job's placement: its node, the ranks that run there, and the slot that keeps a copy.
struct session_node {
    std::string name;
    std::string addr;  ///< empty = same as name
    std::vector<std::uint32_t> ranks;
    std::uint32_t buddy = 0;  ///< itself when there is no other node
    bool operator==(const session_node&) const = default;
};

/// A slot whatever node has it.
struct session_slot {
    std::vector<std::uint32_t> ranks;
    std::uint32_t buddy = 0;
    bool operator==(const session_slot&) const = default;
};

struct session_spare {
    std::string name;
    std::string addr;
    bool operator==(const session_spare&) const = default;
};

struct session_request {
    std::uint64_t job = 0;
    std::uint32_t restart = 0;  ///< how often the job was requeued (SLURM_RESTART_COUNT)
    uid_t uid = 0;
    gid_t gid = 0;
    std::string self;         ///< this node's name in `nodes` or `spares`
    std::uint32_t world = 0;  ///< all ranks; every one appears in exactly one node
    std::vector<session_node> nodes;
    std::vector<session_spare> spares;
    /// Of a job whose later steps may have fewer data parallel groups (--train-min-dp), or have them now: all
    /// slots, of which `nodes` are the first; and how few of them are enough. Empty and 0 for others.
    std::vector<session_slot> slots;
    std::uint32_t min_nodes = 0;
    /// Of that one: ranks that are a multiple of so many apart hold the same state.
    std::uint32_t group = 0;
    /// Of earlier runs of the job; the daemon leaves out those that have a part in this one.
    std::vector<session_spare> former;
    std::string dir;          ///< absolute path of the checkpoints in storage; empty = memory only
    std::uint64_t every = 1;  ///< steps between saves (for reports)
    std::uint64_t flush = 0;  ///< steps between flushes to storage; 0 = never
    /// The first step in storage at or after each multiple of it is kept for good; 0 = none is.
    std::uint64_t milestone = 0;
    std::uint32_t buffers = 3;  ///< 2 to 8
    /// Expected state of one rank; its memory is made before the reply. 0 = at attach.
    std::uint64_t bytes = 0;
    bool operator==(const session_request&) const = default;
};

struct session_answer {
    std::uint64_t generation = 0;
    std::string warning;  ///< what the user should know, such as a directory that is not writable; else empty
};

/// Opens the session, or renews it: same job, higher restart, memory kept. Fails with errc::exhausted and
/// numbers when the memory limit does not allow it.
result<session_answer> session_open(const std::string& socket, const session_request& request,
                                    std::chrono::milliseconds timeout);

/// The buddies of the first `slots` slots, where there are no others: each takes the next of those behind it
/// that is there. No slot is its own buddy where there are two.
std::vector<std::uint32_t> buddies_of_first(const std::vector<std::uint32_t>& all, std::uint32_t slots);

struct step_request {
    std::uint64_t job = 0;
    std::uint32_t step = 0;
    std::vector<std::string>
        nodes;  ///< of every slot, or of the first: names from the session's nodes and spares
    /// How often the job had been requeued when this step began. Without it the session is taken for that of
    /// this run.
    std::optional<std::uint32_t> restart{};
    std::vector<std::uint32_t> buddies{};  ///< empty = the slots' buddies stay
};

/// Says which node has which slot in a step. The same call twice is no error. not_found: the job has no
/// session here, or none of so many restarts: open that first.
result<session_answer> step_open(const std::string& socket, const step_request& request,
                                 std::chrono::milliseconds timeout);

/// A daemon that its keeper starts again is waited for; where that takes longer than `timeout` the end is
/// left beside the socket, and the daemon knows it when it is back. That is an error all the same.
result<void> session_detach(const std::string& socket, std::uint64_t job, std::chrono::milliseconds timeout);

/// `drain`: what is complete in memory and not in storage is flushed first.
result<void> session_close(const std::string& socket, std::uint64_t job, bool drain,
                           std::chrono::milliseconds timeout);

struct sealed_job {
    std::uint64_t job = 0;
    std::int64_t step = -1;   ///< newest step that is complete in memory on all ranks; -1 = none
    bool replicated = false;  ///< every rank's shard has a second copy on its buddy
};

/// `job` 0 = all. Answers when everything sealed is in safety, or after `timeout` with what was reached.
result<std::vector<sealed_job>> seal_now(const std::string& socket, std::uint64_t job,
                                         std::chrono::milliseconds timeout);

/// The owner of the job says that its step is not started again, and why. For the fault daemon's agent.
result<void> give_up(const std::string& socket, std::uint64_t job, std::uint32_t step, const std::string& why,
                     std::chrono::milliseconds timeout);

/// The daemon's state as JSON text (an object; `banyan-ckpt status --json` prints it).
result<std::string> status(const std::string& socket, std::chrono::milliseconds timeout);

}  // namespace banyan::ckpt
