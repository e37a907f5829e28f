// SPDX-License-Identifier: BSD-3-Clause
//
// The other daemons: the port on which they come, and the connections on which they are asked. On the
// io_context's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "ckptd/daemon/core.hpp"
#include "ckptd/net/link.hpp"
#include "common/peer/listener.hpp"

namespace banyan::ckpt {

class messenger {
  public:
    /// `serve` answers a daemon that has proved who it is, for as long as its connection is wanted.
    messenger(daemon_core& core, peer::listener::server serve);

    /// Takes connections from now on.
    result<void> open() { return listener_.open(core_.config.bind, core_.config.port); }
    void close() { listener_.close(); }

    /// One connection for shards (`bulk`) and one for everything else, made when first asked for.
    std::shared_ptr<link> link_to(const session_node& node, bool bulk);
    /// One that nobody else has, and that ends with whoever asked for it.
    std::shared_ptr<link> new_link(const session_node& node);
    /// Sends to every other node of the assignment, without waiting.
    void broadcast(const session_ptr& s, peer_message type, json meta);
    void tell_one(const session_ptr& s, const session_node& to, peer_message type, json meta) {
        core_.spawn(tell(s, to, type, std::move(meta)));
    }
    /// Asks the leader: the first living node in slot order. Nothing = we are it.
    task<std::optional<answer_meta>> ask_leader(session_ptr s, peer_message type, json meta,
                                                milliseconds timeout);

  private:
    task<void> tell(session_ptr s, session_node to, peer_message type, json meta);

    daemon_core& core_;
    peer::listener listener_;
    std::map<std::tuple<std::string, std::string, bool>, std::shared_ptr<link>> links_;
};

}  // namespace banyan::ckpt
