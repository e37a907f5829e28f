// SPDX-License-Identifier: BSD-3-Clause
//
// What agents, the controller and banyan-fault say to each other, as frames of common/wire. Agents connect to
// the controller by TCP (munge handshake, role "faultd"); banyan-fault uses the controller's Unix socket.
#pragma once

#include <cstdint>

namespace banyan::fault {

inline constexpr const char* peer_role = "faultd";

enum class message : std::uint16_t {
    hello = 1,     ///< agent: {node, boot, gpus}
    welcome,       ///< controller: {cursor?: {boot, stream, inode, position}, ports_down?: [{card, ports}]}
    events,        ///< agent: {batch, now_ms, events: [...]}; sent again until acknowledged
    ack,           ///< controller: {batch}; the events are kept
    heartbeat,     ///< agent: {now_ms, cursor?, nvlink_domain?, counters}
    seal,          ///< controller: {request, job, timeout_ms}
    sealed,        ///< agent: {request, jobs: [{job, step, replicated}], error}
    self_sealed,   ///< agent: {at_ms, text}; it sealed by itself when it saw the line
    sweep,         ///< controller: {request}; an agent of an earlier release does not answer
    swept,         ///< agent: {request, verdict, text}
    admin = 0x40,  ///< banyan-fault: {cmd, ...}
    answer,        ///< controller: what was asked for, or {error, hint, code}
};

constexpr std::uint16_t code(message m) { return static_cast<std::uint16_t>(m); }
inline constexpr std::size_t max_batch = 64, max_lost_cards = 256;

}  // namespace banyan::fault
