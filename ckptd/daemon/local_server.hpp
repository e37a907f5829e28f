// SPDX-License-Identifier: BSD-3-Clause
//
// The Unix socket: who is let in, how much of him is read, how long he is waited for. What the messages mean
// is the handlers'.
#pragma once

#include <functional>
#include <map>

#include <boost/asio/local/stream_protocol.hpp>

#include "ckptd/daemon/core.hpp"
#include "ckptd/daemon/local_client.hpp"
#include "ckptd/daemon/local_limits.hpp"
#include "common/fd.hpp"

namespace banyan::ckpt {

/// How many connections users may have, by the process's limit of descriptors.
std::uint32_t local_connections();

class local_server {
  public:
    struct handlers {
        std::function<task<answer_meta>(client_ptr, std::uint16_t type, json meta)> answer;
        std::function<void(const client_ptr&)> left;
    };
    local_server(daemon_core& core, handlers h);

    /// One daemon a socket: errc::conflict where another one has it and does not leave. The keeper holds that
    /// for all its daemons; what it has of it is taken out of `kept`.
    result<void> lock(std::vector<keeper::handed_over>& kept);
    /// Takes connections from now on.
    result<void> open();
    /// Nobody finds it any more.
    void close();

  private:
    result<void> listen();
    task<void> accept();
    void admit(asio::local::stream_protocol::socket socket, uid_t uid, pid_t pid);
    task<void> serve(client_ptr client);
    task<void> converse(client_ptr client);
    /// The reply, ready to be sent.
    task<std::string> answer(client_ptr client, std::uint16_t type, json meta);
    task<void> take_turn(client_ptr client, local_limits::demand what);

    daemon_core& core_;
    const handlers handlers_;
    local_limits limits_;
    log_limiter refusals_;
    descriptor_reserve reserve_;
    unique_fd lock_;  ///< held while this daemon has its socket and port
    asio::local::stream_protocol::acceptor acceptor_;
    std::map<std::uint64_t, client_ptr> clients_;
    std::uint64_t next_id_ = 1;
};

}  // namespace banyan::ckpt
