// SPDX-License-Identifier: BSD-3-Clause
//
// A daemon's TCP port: everything from the first byte to a peer that has proved who it is. What a stranger
// can make it hold is bounded (admission.hpp); what it refuses is logged once a minute for each address.
#pragma once

#include <functional>
#include <list>
#include <vector>

#include "common/log.hpp"
#include "common/peer/admission.hpp"
#include "common/peer/handshake.hpp"

namespace banyan::peer {

/// As an address to listen on: all that this host has, IPv6 (where there is any) and IPv4.
inline constexpr const char* every_address = "*";

/// All on one io_context, which it must not outlive by more than the destruction of its tasks.
class listener {
  public:
    using server = std::function<task<void>(std::shared_ptr<channel>)>;

    /// `limits.reserved_port_only` is set from uses_reserved_ports(). `serve` runs as long as a proven peer's
    /// connection is wanted; the connection is closed after it.
    listener(asio::any_io_executor executor, settings handshake, admission_limits limits, server serve);

    /// `address` is a name or an address of this host, or every_address. Of a name all addresses are served,
    /// IPv6 and IPv4; a host's own name that is known as a loopback address alone stands for all of the
    /// host's. Accepts from then on. Errors: no such name; no address of this host; the port is taken.
    result<void> open(const std::string& address, std::uint16_t port);
    void close();

    const settings& handshake() const { return settings_; }

  private:
    result<void> open_at(const asio::ip::tcp::endpoint& at);
    result<std::vector<asio::ip::tcp::endpoint>> places_of(const std::string& address, std::uint16_t port);
    task<void> accept(asio::ip::tcp::acceptor& acceptor);
    task<void> greet(asio::ip::tcp::socket socket);
    static void refuse(const std::string& from, const error& why, log_limiter& limiter);

    asio::any_io_executor executor_;
    settings settings_;
    std::shared_ptr<admission> admission_;
    server serve_;
    std::list<asio::ip::tcp::acceptor> acceptors_;  // a coroutine holds each
    log_limiter limiter_;
};

}  // namespace banyan::peer
