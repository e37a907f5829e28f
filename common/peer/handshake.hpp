// SPDX-License-Identifier: BSD-3-Clause
//
// Mutual authentication of two daemons on a fresh TCP connection, by munge:
//
//     caller                                        listener
//     hello  {who calls, who is wanted, key}  ->
//                                             <-    challenge {who listens, key}
//     proof  {credential of the statement}    ->    decodes, checks uid and statement
//                                             <-    welcome {credential of the statement}
//     decodes, checks uid and statement
//
// The statement is what each end knows of the connection: who speaks, the role, both nodes, both addresses
// and ports, both keys. So a credential is of no use on another connection, a relay between two daemons is
// seen by both, and since the keys are those of an agreement (keys.hpp), only the two ends can speak on the
// connection afterwards. The credentials can be decoded by the daemons' user alone. munge says under which
// user a peer runs, not on which node: whoever has root on one node and the cluster's munge key is trusted
// with all of them, as in Slurm itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/peer/channel.hpp"

namespace banyan::peer {

struct settings {
    std::string munge_socket;          ///< empty = munged's default
    std::vector<uid_t> trusted = {0};  ///< user ids that a peer daemon may run under
    std::string role;                  ///< names the protocol, such as "ckptd": another role is refused
    std::string node;                  ///< ours
    bool encrypt = false;              ///< done where either end wants it
    std::chrono::milliseconds timeout{5000};
    asio::thread_pool* munge_pool = nullptr;  ///< for munge, which may be slow or hang
    asio::thread_pool* pool = nullptr;        ///< for the arithmetic over large bodies

    /// Trusts root and, where we run as another user, that one.
    static settings of(std::string role, std::string node, std::string munge_socket, bool encrypt,
                       asio::thread_pool& munge_pool, asio::thread_pool& pool);
};

/// Where daemons run as root they call from ports below 1024, and listen to no others: see admission.hpp.
bool uses_reserved_ports();

/// Proves both ends to each other within o.timeout; null: the caller closed without a word. On failure
/// `socket` is closed, else in the channel. Both and `o` must stay valid until the task is done.
task<result<std::unique_ptr<channel>>> accept_peer(asio::ip::tcp::socket& socket, const settings& o);

/// Resolves, connects and authenticates, each within o.timeout. The peer must be `node`, unless that is
/// empty.
task<result<std::unique_ptr<channel>>> connect_peer(std::string host, std::uint16_t port, std::string node,
                                                    const settings& o);

}  // namespace banyan::peer
