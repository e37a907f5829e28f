// SPDX-License-Identifier: BSD-3-Clause
//
// A TCP connection to another node's daemon, from a port that root alone can take where we are root.
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "common/wire_async.hpp"

namespace banyan::peer {

/// Resolves `host` (a name, IPv4 or IPv6 address) and connects to the first of its addresses that answers.
task<result<void>> connect_to(asio::ip::tcp::socket& socket, std::string host, std::uint16_t port);

}  // namespace banyan::peer
