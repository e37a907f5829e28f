// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/listener.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "common/peer/statement.hpp"

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

}  // namespace

listener::listener(asio::any_io_executor executor, settings handshake, admission_limits limits, server serve)
    : executor_(executor),
      settings_(std::move(handshake)),
      admission_(std::make_shared<admission>(with_port_rule(limits))),
      serve_(std::move(serve)),
      acceptor_(executor) {}

result<void> listener::open_at(const tcp::endpoint& at) {
    boost::system::error_code ec;
    acceptor_.close(ec);
    acceptor_.open(at.protocol(), ec);
    if (!ec) acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor_.bind(at, ec);
    if (!ec) acceptor_.listen(1024, ec);
    if (!ec) return {};
    return fail(errc::unavailable, fmt::format("cannot listen on {}: {}", to_text(at), ec.message()),
                "is another daemon running there, or does another program have the port?");
}

result<void> listener::open(const std::string& address, std::uint16_t port) {
    boost::system::error_code ec;
    tcp::resolver resolver(executor_);
    const auto places = resolver.resolve(address, std::to_string(port), tcp::resolver::passive, ec);
    if (ec || places.empty())
        return fail(
            errc::invalid_input,
            fmt::format("cannot listen on \"{}\": no such address or name: {}", address, ec.message()),
            "see bind in banyan.conf");
    result<void> opened;
    for (const auto& place : places)
        if (opened = open_at(place.endpoint()); opened) break;
    if (!opened) return opened;
    if (uses_reserved_ports() && port >= first_unreserved_port)
        spdlog::info("port {} is one that any user of this node may take while no daemon has it", port);
    asio::co_spawn(executor_, accept(), say_bug);
    return {};
}

void listener::close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
}

void listener::refuse(const std::string& from, const error& why, log_limiter& limiter) {
    std::uint64_t held_back = 0;
    if (limiter.pass(from, std::chrono::steady_clock::now(), held_back))
        spdlog::warn("a connection from {} was refused: {} ({} more since)", from, why.text(), held_back);
}

task<void> listener::accept() {
    log_limiter own;  // strangers, who fill the other with their addresses, must not keep this one unsaid
    for (;;) {
        auto [ec, socket] = co_await acceptor_.async_accept(as_result);
        if (!acceptor_.is_open()) co_return;
        if (!ec) try {
                asio::co_spawn(executor_, greet(std::move(socket)), say_bug);
                continue;
            } catch (const std::bad_alloc&) {
                ec = asio::error::no_memory;
            }
        refuse("anywhere", {errc::exhausted, "cannot accept: " + ec.message(), "raise LimitNOFILE"}, own);
        asio::steady_timer pause(executor_, std::chrono::milliseconds(50));  // until some have gone
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
    if (!place->prove()) {
        refuse(address, {errc::exhausted, "too many daemons are connected", ""}, limiter_);
        co_return;
    }
    const std::shared_ptr<channel> peer = std::move(*opened);
    co_await serve_(peer);
    peer->close();
}

}  // namespace banyan::peer
