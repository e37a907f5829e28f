// SPDX-License-Identifier: BSD-3-Clause
//
// A daemon's TCP port: everything from the first byte to a peer that has proved who it is. What a stranger
// can make it hold is bounded (admission.hpp); what it refuses is logged once a minute for each address.
#pragma once

#include <functional>

#include "common/log.hpp"
#include "common/peer/admission.hpp"
#include "common/peer/handshake.hpp"

namespace banyan::peer {

/// All on one io_context, which it must not outlive by more than the destruction of its tasks.
class listener {
  public:
    using server = std::function<task<void>(std::shared_ptr<channel>)>;

    /// `limits.reserved_port_only` is set from uses_reserved_ports(). `serve` runs as long as a proven peer's
    /// connection is wanted; the connection is closed after it.
    listener(asio::any_io_executor executor, settings handshake, admission_limits limits, server serve);

    /// `address` is a name or an address of this host. Accepts from then on.
    result<void> open(const std::string& address, std::uint16_t port);
    void close();

    const settings& handshake() const { return settings_; }

  private:
    result<void> open_at(const asio::ip::tcp::endpoint& at);
    task<void> accept();
    task<void> greet(asio::ip::tcp::socket socket);
    static void refuse(const std::string& from, const error& why, log_limiter& limiter);

    asio::any_io_executor executor_;
    settings settings_;
    std::shared_ptr<admission> admission_;
    server serve_;
    asio::ip::tcp::acceptor acceptor_;
    log_limiter limiter_;
};

}  // namespace banyan::peer
