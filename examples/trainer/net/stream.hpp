// SPDX-License-Identifier: BSD-3-Clause
//
// One TCP connection to a peer, blocking, with a bound on every wait. A peer that is gone is a failure that
// names it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <netinet/in.h>

#include "common/fd.hpp"

namespace trainer {

using clock = std::chrono::steady_clock;

class stream {
  public:
    stream() = default;
    /// `peer` is how messages name the other side: "rank 3".
    stream(banyan::unique_fd fd, std::string peer, std::chrono::milliseconds timeout);

    void send(std::span<const std::byte> data);
    void receive(std::span<std::byte> data);

    /// One message with a tag and its length in front; the receiver states both, so a slip in the schedule is
    /// a failure, not wrong numbers.
    void send_tagged(std::uint32_t tag, std::span<const float> data);
    void receive_tagged(std::uint32_t tag, std::span<float> data);

    int fd() const { return fd_.get(); }
    explicit operator bool() const { return static_cast<bool>(fd_); }
    void name(std::string peer) { peer_ = std::move(peer); }
    void limit(std::chrono::milliseconds timeout);

  private:
    banyan::unique_fd fd_;
    std::string peer_;
};

/// A listener on `address` (all addresses when it is zero) and `port` (0 = any free one). Waits for a port in
/// use until `until`: the previous step's process may still be going.
banyan::unique_fd listen_on(in_addr address, std::uint16_t port, clock::time_point until);
std::uint16_t port_of(int listener);
/// The next connection, or failure at `until`; `waiting_for` completes "no connection from …".
banyan::unique_fd accept_one(int listener, clock::time_point until, const std::string& waiting_for);
/// Tries until it is accepted or `until` passed.
banyan::unique_fd connect_to(const sockaddr_in& to, clock::time_point until, const std::string& peer);
/// IPv4 address of a host name.
in_addr resolve(const std::string& host);
/// Whether a listener of this machine can have the address.
bool is_local(in_addr address);

}  // namespace trainer
