// SPDX-License-Identifier: BSD-3-Clause
//
// The sending half of a connection: frames go into a bounded queue, one coroutine writes them in order. All
// calls from the one thread of the io_context.
#pragma once

#include <deque>
#include <memory>

#include "common/peer/channel.hpp"
#include "common/timer.hpp"
#include "fault/net/protocol.hpp"

namespace banyan::fault {

class channel : public std::enable_shared_from_this<channel> {
  public:
    explicit channel(std::shared_ptr<peer::channel> connection);

    /// False when the connection is closed or the peer does not keep up: the caller keeps what it has.
    bool send(message type, nlohmann::json meta);
    void start();  ///< begins to write
    void close();
    bool is_open() const { return open_; }
    peer::channel& peer() { return *peer_; }

  private:
    static task<void> write_loop(std::shared_ptr<channel> self);

    static constexpr std::size_t max_queued = 256;
    std::shared_ptr<peer::channel> peer_;
    timer wake_;
    std::deque<std::pair<message, nlohmann::json>> queue_;
    bool open_ = true;
};

}  // namespace banyan::fault
