// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/connect.hpp"

#include <memory>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <sys/random.h>

#include "common/peer/handshake.hpp"
#include "common/timer.hpp"

namespace banyan::peer {
namespace {

using asio::ip::tcp;

// The range from which the kernel's NFS client takes its ports: above most services that listen.
constexpr std::uint16_t lowest_port = 665, highest_port = 1023;
constexpr std::chrono::milliseconds timeout_with_others{1500};
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

// A name's other addresses are tried while there is time: one that swallows packets, such as that of a family
// which some switch does not carry, is not all that a peer has.
task<boost::system::error_code> connect_within(tcp::socket& socket, tcp::endpoint to) {
    using namespace asio::experimental::awaitable_operators;
    timer timeout(co_await asio::this_coro::executor, timeout_with_others);
    auto first = co_await (connect_one(socket, to) || timeout.async_wait(as_result));
    if (first.index() == 0) co_return std::get<0>(first);
    boost::system::error_code ignored;
    socket.close(ignored);
    co_return asio::error::make_error_code(asio::error::timed_out);
}

std::string shown(const std::string& host, std::uint16_t port) {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                               : fmt::format("[{}]:{}", host, port);
}

struct answer {
    boost::system::error_code ec = asio::error::operation_aborted;
    tcp::resolver::results_type places;
};

// Asio's resolver makes its thread when it is first asked, and throws when there is none to be had: past
// whoever waits for it, so it is asked from outside the wait. Nor can a question be taken back: whoever has
// waited long enough leaves it alone.
task<result<tcp::resolver::results_type>> resolve(std::string host, std::uint16_t port) {
    const auto executor = co_await asio::this_coro::executor;
    const auto heard = std::make_shared<answer>();
    const auto done = std::make_shared<timer>(executor, timer::time_point::max());
    tcp::resolver resolver(executor);
    const blocking_call counted;
    try {
        resolver.async_resolve(host, std::to_string(port), [heard, done](auto ec, auto places) {
            *heard = {ec, std::move(places)};
            done->cancel();
        });
    } catch (const boost::system::system_error& e) {
        co_return fail(errc::unavailable, fmt::format("cannot resolve {}: {}", host, e.code().message()));
    }
    co_await done->async_wait(as_result);
    if (!heard->ec) co_return std::move(heard->places);
    co_return fail(errc::unavailable, fmt::format("cannot resolve {}: {}", host, heard->ec.message()));
}

}  // namespace

task<result<void>> connect_to(tcp::socket& socket, std::string host, std::uint16_t port) {
    BANYAN_CO_TRY(const auto places, co_await resolve(host, port));
    auto last = asio::error::make_error_code(asio::error::host_not_found);
    std::size_t left = places.size();
    for (const auto& place : places) {
        const auto to = place.endpoint();
        if (--left > 0)
            last = co_await connect_within(socket, to);
        else
            last = co_await connect_one(socket, to);
        boost::system::error_code ignored;
        if (!last) {
            socket.set_option(tcp::no_delay(true), ignored);
            co_return result<void>{};
        }
    }
    co_return fail(errc::unavailable,
                   fmt::format("cannot connect to {}: {}", shown(host, port), last.message()));
}

}  // namespace banyan::peer
