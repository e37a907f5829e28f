// SPDX-License-Identifier: BSD-3-Clause
//
// What a keeper and its daemon say to each other, over a SOCK_SEQPACKET pair of sockets: fixed records, some
// with one descriptor. Both are of one installation, but a daemon may be newer than the keeper that it finds:
// records of an unknown type are passed over.
#pragma once

#include <cstdint>
#include <optional>

#include "common/fd.hpp"

namespace banyan::ckpt::keeper {

/// In the daemon's environment: the descriptor of its end.
constexpr auto socket_variable = "BANYAN_KEEPER_FD";
/// In the daemon's environment when it is started again: how the one before it ended.
constexpr auto ended_variable = "BANYAN_KEEPER_ENDED";

enum class record_type : std::uint32_t {
    hold = 1,  ///< daemon to keeper, with a descriptor: keep it under this number
    drop,      ///< daemon to keeper
    ready,     ///< daemon to keeper: it serves; number 1: and has let go of standard error
    kept,      ///< keeper to daemon, with a descriptor: that was held
    all,       ///< keeper to daemon: these were all
    taken,     ///< daemon to keeper: it has read them all
};

enum class contents : std::uint32_t {
    ledger = 1,  ///< what a session has to remember
    shards,      ///< memory of ranks, or of copies
    lock,        ///< of this node's daemon: no other one may have it between two of a keeper's
};

struct record {
    record_type type = record_type::all;
    contents what = contents::ledger;
    std::uint64_t number = 0;
};

/// False when the other end is gone, or, with MSG_DONTWAIT in `flags`, does not read.
bool send_record(int socket, const record& r, int fd = -1, int flags = 0);

struct received {
    record what;
    unique_fd fd;
};
/// Blocks until something comes; nothing when the other end is gone.
std::optional<received> receive_record(int socket);

}  // namespace banyan::ckpt::keeper
