// SPDX-License-Identifier: BSD-3-Clause
//
// Messages between the daemons of a job, on TCP after the handshake of common/peer (peer_role). All carry
// "job" and the sender's "generation"; an older generation than the receiver's is refused. Every request has
// one reply; what is marked [no reply] is no request. Who is no node of the job as the receiver knows it gets
// nothing but `holdings`, `get` and `leave`, and those as a daemon of a later launch: with the job's user in
// "uid".
#pragma once

#include <cstddef>
#include <cstdint>

namespace banyan::ckpt {

enum class peer_message : std::uint16_t {
    reply = 1,
    put_begin =
        0x100,  ///< a shard follows: rank, key, bytes, checksums; reply {"have"} or {"busy"}. Of at
                ///< most put_at_once it may be the body; then the reply is put_end's where it is taken
    put_chunk,  ///< [no reply] {"i"} and the chunk as body
    put_end,    ///< reply {"bad": [chunks whose checksum differed]}
    get,        ///< rank and key; reply {"bytes", "chunks"}, then one get_chunk per chunk; of "only" that
                ///< chunk alone; with "look" none
    get_chunk,  ///< [part of a reply] the chunk as body
    ping,       ///< are you there; no job
    agree,      ///< messages of ckptd/agreement, those of every step as the body (daemon/packing.hpp);
                ///< their generation may be an older one
    flush,      ///< from the leader: bring key to storage
    flushed,    ///< to the leader: the node's files of key, or "failed"
    durable,    ///< from the leader: key is committed in storage
    flush_now,  ///< to the leader: flush the newest commit though it is not its turn
    warning,    ///< to the leader: "about" and "text", which the user is to be told once
    holdings,   ///< from a later launch on other nodes: "uid"; reply {"copies", "replicated"}, as an
                ///< inventory's
    leave,      ///< from a later launch, which needs nothing of the node any more: "uid"
    agreed,     ///< [no reply] as `agree`, words that are said again until they have led to something
    where,      ///< to the first slot: who holds the shards of key; reply {"nodes", "ranks", "at"}
    standing,   ///< from the leader: where do your ranks stand; reply {"ranks"} (daemon/standing.hpp)
    hung,       ///< from the leader: "ranks" keep the others waiting at "step", as "why" says
};

constexpr std::size_t put_at_once = 256 * 1024;

/// In the type of a message that is about a state with a name, which is in "state": a daemon that knows of no
/// such states would take it for one about the job's own, and refuses the type.
constexpr std::uint16_t of_named_state = 0x1000;

/// With the number of these messages: daemons of another one are refused before they say anything.
constexpr const char* peer_role = "ckptd 7";

}  // namespace banyan::ckpt
