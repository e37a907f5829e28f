// SPDX-License-Identifier: BSD-3-Clause
//
// What the daemon's metrics say, as Prometheus reads them.
#pragma once

#include <string>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/fd.hpp"

namespace banyan::fault::testing {

inline std::string page(const std::string& address) {
    const unique_fd peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(peer.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const std::string ask = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    REQUIRE(::send(peer.get(), ask.data(), ask.size(), 0) == static_cast<ssize_t>(ask.size()));
    std::string out(1 << 16, '\0');
    std::size_t have = 0;
    for (ssize_t n = 0; (n = ::recv(peer.get(), out.data() + have, out.size() - have, 0)) > 0;)
        have += static_cast<std::size_t>(n);
    out.resize(have);
    return out;
}

}  // namespace banyan::fault::testing
