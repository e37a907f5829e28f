// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/connect.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include "common/peer/handshake.hpp"

namespace banyan::peer {
namespace {

using asio::ip::tcp;

// The range from which the kernel's NFS client takes its ports: above most services that listen.
constexpr std::uint16_t lowest_port = 665, highest_port = 1023;
constexpr int most_tries = 64;  // of them all, a port being taken for this very destination only is rare

std::uint16_t random_port() {
    std::uint16_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) random = 0;
    return static_cast<std::uint16_t>(lowest_port + random % (highest_port - lowest_port + 1));
}

bool is_taken(const boost::system::error_code& ec) {
    return ec == asio::error::address_in_use || ec.value() == EADDRNOTAVAIL;
}

boost::system::error_code open_from(tcp::socket& socket, const tcp::endpoint& to, std::uint16_t port) {
    boost::system::error_code ec;
    socket.close(ec);
    socket.open(to.protocol(), ec);
    if (ec || port == 0) return ec;
    socket.set_option(tcp::socket::reuse_address(true), ec);
    if (!ec) socket.bind(tcp::endpoint(to.protocol(), port), ec);
    return ec;
}

// One port serves many destinations at a time, so only a few tries fail; without the right to take such a
// port (a root without CAP_NET_BIND_SERVICE) any port will do, and the peer says that it will not.
task<boost::system::error_code> connect_one(tcp::socket& socket, tcp::endpoint to) {
    auto port = uses_reserved_ports() ? random_port() : std::uint16_t{0};
    boost::system::error_code ec;
    for (int i = 0; i < most_tries; ++i) {
        ec = open_from(socket, to, port);
        if (ec == asio::error::access_denied && port != 0) ec = open_from(socket, to, port = 0);
        if (!ec) {
            auto [failed] = co_await socket.async_connect(to, as_result);
            ec = failed;
        }
        if (!is_taken(ec) || port == 0) break;
        port = port == highest_port ? lowest_port : static_cast<std::uint16_t>(port + 1);
    }
    co_return ec;
}

}  // namespace

task<result<void>> connect_to(tcp::socket& socket, std::string host, std::uint16_t port) {
    tcp::resolver resolver(co_await asio::this_coro::executor);
    auto [resolve_error, places] = co_await resolver.async_resolve(host, std::to_string(port), as_result);
    if (resolve_error)
        co_return fail(errc::unavailable,
                       fmt::format("cannot resolve {}: {}", host, resolve_error.message()));
    auto last = asio::error::make_error_code(asio::error::host_not_found);
    for (const auto& place : places) {
        last = co_await connect_one(socket, place.endpoint());
        boost::system::error_code ignored;
        if (!last) {
            socket.set_option(tcp::no_delay(true), ignored);
            co_return result<void>{};
        }
    }
    co_return fail(errc::unavailable, fmt::format("cannot connect to {}:{}: {}", host, port, last.message()));
}

}  // namespace banyan::peer
