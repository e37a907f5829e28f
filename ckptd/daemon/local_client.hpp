// SPDX-License-Identifier: BSD-3-Clause
//
// A process on this node's Unix socket.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <boost/asio/local/stream_protocol.hpp>
#include <sys/ioctl.h>

#include "ckptd/daemon/process.hpp"
#include "ckptd/daemon/session.hpp"
#include "ckptd/net/async.hpp"

namespace banyan::ckpt {

struct local_client {
    local_client(asio::local::stream_protocol::socket s, uid_t u, pid_t p)
        : socket(std::move(s)), uid(u), pid(p), started(process::started_of(p)) {}
    std::uint64_t id = 0;
    asio::local::stream_protocol::socket socket;
    uid_t uid;
    pid_t pid;
    std::uint64_t started;            ///< when `pid` was
    bool busy = false;                ///< with a message that has begun to come, until it is answered
    bool left = false;                ///< no message of it will be read any more
    std::weak_ptr<session> attached;  ///< a connection keeps no session's memory
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;
    std::shared_ptr<shard_memory> passed;  ///< goes out with the next reply
    struct bytes {
        std::shared_ptr<const void> keeps;  ///< them there
        std::span<const std::byte> at;
    };
    bytes body;  ///< of the next reply

    /// The session that its rank is attached to; null where that has ended, or never was.
    session_ptr session_of_rank() const {
        const auto s = attached.lock();
        return s && !s->closed ? s : nullptr;
    }
    /// Whether something that it has sent is still to be taken note of.
    bool has_more_to_say() {
        int waiting = 0;
        if (left || !socket.is_open()) return false;
        return busy || (::ioctl(socket.native_handle(), FIONREAD, &waiting) == 0 && waiting != 0);
    }
};
using client_ptr = std::shared_ptr<local_client>;

}  // namespace banyan::ckpt
