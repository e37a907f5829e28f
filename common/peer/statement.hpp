// SPDX-License-Identifier: BSD-3-Clause
//
// What the two ends of a handshake state to each other, as text: see handshake.hpp.
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "common/result.hpp"

namespace banyan::peer {

/// Changes with the handshake and with what follows it on the connection.
constexpr unsigned protocol_version = 2;
/// In bytes: a Slurm node name is shorter.
constexpr std::size_t max_node_name = 255;

struct statement {
    std::string role;
    std::string caller, wanted, listener;  ///< nodes; wanted is empty where the caller takes any
    std::string caller_at, listener_at;    ///< address and port
    std::string caller_key, listener_key;  ///< hexadecimal
    bool encrypt = false;

    /// One text for one statement, different for the two speakers.
    std::string text(bool by_caller) const;
    /// Why `theirs`, what the peer stated, is not text(by_caller).
    error difference(const std::string& theirs, bool by_caller) const;
};

/// "10.0.0.1:571" or "[fd00::1]:571"; an IPv4 address in IPv6 clothes reads like the first.
std::string to_text(const boost::asio::ip::tcp::endpoint& at);

/// A node's name holds letters, digits, '.', '_' and '-', and is not longer than max_node_name.
result<void> check_node_name(const std::string& name);

}  // namespace banyan::peer
