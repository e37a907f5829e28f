// SPDX-License-Identifier: BSD-3-Clause
//
// Mutual authentication of two daemons on a fresh TCP connection, by munge:
//
//     caller                                   listener
//     hello  {role, nonce c}          ->
//                                     <-       challenge {nonce s}
//     proof  {cred over "c s role"}   ->       decodes, checks uid and nonces
//                                     <-       welcome {cred over "s c role"}
//     decodes, checks uid and nonces
//
// The nonces bind both credentials to this connection, so neither can be used on another. Credentials of
// users other than `trusted` are refused. What follows on the connection is neither encrypted nor signed, as
// in Slurm itself.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/wire_async.hpp"

namespace banyan {

struct peer_trust {
    std::string munge_socket;          ///< empty = munged's default
    std::vector<uid_t> trusted = {0};  ///< user ids that a peer daemon may run under
    std::chrono::milliseconds timeout{5000};
};

/// `role` names the protocol, such as "ckptd" or "faultd": a connection of another role is refused.
task<result<void>> handshake_as_caller(asio::ip::tcp::socket& socket, asio::thread_pool& pool,
                                       const peer_trust& trust, std::string role);
task<result<void>> handshake_as_listener(asio::ip::tcp::socket& socket, asio::thread_pool& pool,
                                         const peer_trust& trust, std::string role);

/// Resolves, connects and authenticates, all within trust.timeout.
task<result<asio::ip::tcp::socket>> connect_peer(std::string host, std::uint16_t port,
                                                 asio::thread_pool& pool, const peer_trust& trust,
                                                 std::string role);

}  // namespace banyan
