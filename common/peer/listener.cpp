// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/listener.hpp"

#include <algorithm>
#include <array>

#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "common/peer/statement.hpp"
#include "common/timer.hpp"

namespace banyan::peer {
namespace {

using asio::ip::tcp;

admission_limits with_port_rule(admission_limits limits) {
    limits.reserved_port_only = uses_reserved_ports();
    return limits;
}

// A coroutine that throws is a bug of ours; it must not end the daemon.
void say_bug(std::exception_ptr e) {
    try {
        if (e) std::rethrow_exception(e);
    } catch (const std::exception& what) {
        spdlog::critical("a bug, in the connection of a peer: {}", what.what());
    }
}

std::string before_dot(const std::string& name) { return name.substr(0, name.find('.')); }

// Debian's installer gives a host's own name the address 127.0.1.1 in /etc/hosts. That is no address at which
// others reach it, and says nothing of those.
bool is_this_host(const std::string& name) {
    std::array<char, 256> own{};
    ::gethostname(own.data(), own.size() - 1);
    boost::system::error_code ec;
    asio::ip::make_address(name, ec);
    return ec && before_dot(name) == before_dot(own.data());
}

// Installers write 127.0.0.1, 127.0.0.2, 127.0.1.1 or ::1. Whoever gives a host another address of the
// loopback network, as where many hosts are one, means it.
bool is_installers_choice(const asio::ip::address& at) {
    if (!at.is_v4()) return at.is_loopback();
    const auto bytes = at.to_v4().to_bytes();
    return bytes[0] == 127 && bytes[1] == 0;
}

std::vector<tcp::endpoint> all_addresses(std::uint16_t port) {
    return {{tcp::v6(), port}, {tcp::v4(), port}};
}

}  // namespace

listener::listener(asio::any_io_executor executor, settings handshake, admission_limits limits, server serve)
    : executor_(executor),
      settings_(std::move(handshake)),
      admission_(std::make_shared<admission>(with_port_rule(limits))),
      serve_(std::move(serve)) {}

result<void> listener::open_at(const tcp::endpoint& at) {
    tcp::acceptor opened(executor_);
    boost::system::error_code ec;
    opened.open(at.protocol(), ec);
    if (!ec) opened.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec && at.address().is_v6()) opened.set_option(asio::ip::v6_only(!at.address().is_unspecified()), ec);
    if (!ec) opened.bind(at, ec);
    if (!ec) opened.listen(1024, ec);
    if (ec)
        return fail(errc::unavailable, fmt::format("cannot listen on {}: {}", to_text(at), ec.message()),
                    ec == asio::error::address_in_use
                        ? "another daemon, or another program, has the port"
                        : "is that an address of this node? See bind in banyan.conf");
    acceptors_.push_back(std::move(opened));
    return {};
}

result<std::vector<tcp::endpoint>> listener::places_of(const std::string& address, std::uint16_t port) {
    if (address == every_address) return all_addresses(port);
    boost::system::error_code ec;
    tcp::resolver resolver(executor_);
    const auto found = resolver.resolve(address, std::to_string(port), tcp::resolver::passive, ec);
    if (ec || found.empty())
        return fail(
            errc::invalid_input,
            fmt::format("cannot listen on \"{}\": no such address or name: {}", address, ec.message()),
            "see bind in banyan.conf, and NodeAddr in slurm.conf");
    std::vector<tcp::endpoint> places;
    for (const auto& place : found) places.push_back(place.endpoint());
    const auto by_installer = [](const auto& at) { return is_installers_choice(at.address()); };
    if (std::all_of(places.begin(), places.end(), by_installer) && is_this_host(address)) {
        spdlog::info(
            "{} is known on this node as {} alone, where no other node can call: listening on all addresses",
            address, places.front().address().to_string());
        return all_addresses(port);
    }
    return places;
}

// A name may have addresses of both kinds, and peers try them all: one is enough, those that are not this
// node's do not count.
result<void> listener::open(const std::string& address, std::uint16_t port) {
    BANYAN_TRY(const auto places, places_of(address, port));
    result<void> failed;
    for (const auto& place : places) {
        // Where IPv6 is there, its "any" takes IPv4 too.
        if (place.address().is_unspecified() && !acceptors_.empty()) break;
        if (auto opened = open_at(place); !opened && failed) failed = std::move(opened);
    }
    if (acceptors_.empty()) return failed;
    if (!failed)
        spdlog::info("{}; {} other addresses of {} are served", failed.error().what, acceptors_.size(),
                     address);
    if (uses_reserved_ports() && port >= first_unreserved_port)
        spdlog::info("port {} is one that any user of this node may take while no daemon has it", port);
    for (auto& acceptor : acceptors_) asio::co_spawn(executor_, accept(acceptor), say_bug);
    return {};
}

void listener::close() {
    boost::system::error_code ignored;
    for (auto& acceptor : acceptors_) acceptor.close(ignored);
}

void listener::refuse(const std::string& from, const error& why, log_limiter& limiter) {
    std::uint64_t held_back = 0;
    if (limiter.pass(from, clock::now(), held_back))
        spdlog::warn("a connection from {} was refused: {} ({} more since)", from, why.text(), held_back);
}

task<void> listener::accept(tcp::acceptor& acceptor) {
    log_limiter own;  // strangers, who fill the other with their addresses, must not keep this one unsaid
    for (;;) {
        auto [ec, socket] = co_await acceptor.async_accept(as_result);
        if (!acceptor.is_open()) co_return;
        if (!ec) try {
                asio::co_spawn(executor_, greet(std::move(socket)), say_bug);
                continue;
            } catch (const std::bad_alloc&) {
                ec = asio::error::no_memory;
            }
        refuse("anywhere", {errc::exhausted, "cannot accept: " + ec.message(), "raise LimitNOFILE"}, own);
        timer pause(executor_, std::chrono::milliseconds(50));  // until some have gone
        co_await pause.async_wait(as_result);
    }
}

task<void> listener::greet(tcp::socket accepted) {
    auto socket = std::make_shared<tcp::socket>(std::move(accepted));
    boost::system::error_code ec;
    const auto from = socket->remote_endpoint(ec);
    if (ec) co_return;
    const auto address = from.address().to_string();
    const auto place = admission_->enter(from, [weak = std::weak_ptr(socket)] {
        boost::system::error_code ignored;
        if (const auto s = weak.lock()) s->close(ignored);
    });
    if (!place) {
        if (uses_reserved_ports() && from.port() >= first_unreserved_port)
            refuse(address,
                   {errc::denied,
                    fmt::format("it comes from port {}, which any user may take; expected one below "
                                "1024",
                                from.port()),
                    "daemons run as root, with CAP_NET_BIND_SERVICE"},
                   limiter_);
        co_return;
    }
    socket->set_option(tcp::no_delay(true), ec);
    auto opened = co_await accept_peer(*socket, settings_);
    if (!opened) {
        refuse(address, opened.error(), limiter_);
        co_return;
    }
    if (!*opened) {
        spdlog::debug("{} looked whether this port is open", address);
        co_return;
    }
    if (!place->prove()) {
        refuse(address, {errc::exhausted, "too many daemons are connected", ""}, limiter_);
        co_return;
    }
    const std::shared_ptr<channel> peer = std::move(*opened);
    co_await serve_(peer);
    peer->close();
}

}  // namespace banyan::peer
