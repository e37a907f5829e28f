// SPDX-License-Identifier: BSD-3-Clause
#include "common/handshake.hpp"

#include <algorithm>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <sys/random.h>

#include "common/munge.hpp"

namespace banyan {
namespace {

using asio::ip::tcp;

enum type : std::uint16_t { hello = 0xff01, challenge, proof, welcome, refused };
constexpr std::size_t nonce_text = 32;  // 16 random bytes as hex
constexpr std::size_t max_credential = 64 * 1024;

std::string make_nonce() {
    std::array<unsigned char, nonce_text / 2> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
    return fmt::format("{:02x}", fmt::join(bytes, ""));
}

task<result<void>> send_proof(tcp::socket& socket, asio::thread_pool& pool, const peer_trust& trust, type as,
                              std::string payload) {
    BANYAN_CO_TRY(auto text,
                  co_await run_blocking(pool, [&] { return munge::encode(trust.munge_socket, payload); }));
    nlohmann::json meta{{"credential", std::move(text)}};
    co_return co_await wire::write_frame(socket, as, std::move(meta));
}

task<result<void>> check_proof(asio::thread_pool& pool, const peer_trust& trust, nlohmann::json meta,
                               std::string payload) {
    BANYAN_CO_TRY(const auto text, wire::get_string(meta, "credential", max_credential));
    BANYAN_CO_TRY(const auto credential,
                  co_await run_blocking(pool, [&] { return munge::decode(trust.munge_socket, text); }));
    if (credential.payload != payload)
        co_return fail(errc::denied, "the peer's credential was made for another connection");
    if (std::find(trust.trusted.begin(), trust.trusted.end(), credential.uid) == trust.trusted.end())
        co_return fail(errc::denied,
                       fmt::format("the peer runs under uid {}, which is not trusted", credential.uid));
    co_return result<void>{};
}

task<result<wire::frame>> expect(tcp::socket& socket, type wanted) {
    BANYAN_CO_TRY(auto frame, co_await wire::read_frame(socket));
    if (frame.type == refused)
        if (auto e = wire::error_from(frame.meta)) co_return std::unexpected(std::move(*e));
    if (frame.type != wanted) co_return fail(errc::invalid_input, "the peer broke the handshake");
    co_return frame;
}

task<result<void>> call_in(tcp::socket& socket, asio::thread_pool& pool, const peer_trust& trust,
                           std::string role) {
    const auto mine = make_nonce();
    nlohmann::json meta{{"role", role}, {"nonce", mine}};
    BANYAN_CO_CHECK(co_await wire::write_frame(socket, hello, std::move(meta)));
    BANYAN_CO_TRY(const auto answer, co_await expect(socket, challenge));
    BANYAN_CO_TRY(const auto theirs, wire::get_string(answer.meta, "nonce", nonce_text));
    BANYAN_CO_CHECK(
        co_await send_proof(socket, pool, trust, proof, fmt::format("{} {} {}", mine, theirs, role)));
    BANYAN_CO_TRY(auto welcomed, co_await expect(socket, welcome));
    co_return co_await check_proof(pool, trust, std::move(welcomed.meta),
                                   fmt::format("{} {} {}", theirs, mine, role));
}

task<result<void>> listen_in(tcp::socket& socket, asio::thread_pool& pool, const peer_trust& trust,
                             std::string role) {
    BANYAN_CO_TRY(const auto greeting, co_await expect(socket, hello));
    BANYAN_CO_TRY(const auto theirs, wire::get_string(greeting.meta, "nonce", nonce_text));
    BANYAN_CO_TRY(const auto their_role, wire::get_string(greeting.meta, "role", 64));
    const auto mine = make_nonce();
    nlohmann::json meta{{"nonce", mine}};
    BANYAN_CO_CHECK(co_await wire::write_frame(socket, challenge, std::move(meta)));
    BANYAN_CO_TRY(auto proven, co_await expect(socket, proof));
    auto checked =
        their_role == role
            ? co_await check_proof(pool, trust, std::move(proven.meta),
                                   fmt::format("{} {} {}", theirs, mine, role))
            : result<void>(fail(errc::denied, fmt::format("this is {}, not {}", role, their_role)));
    if (!checked) {
        co_await wire::write_frame(socket, refused, wire::error_meta(checked.error()));
        co_return checked;
    }
    co_return co_await send_proof(socket, pool, trust, welcome, fmt::format("{} {} {}", mine, theirs, role));
}

// Runs `work` against the clock; when time is up the socket is closed, which ends `work`.
task<result<void>> within(std::chrono::milliseconds timeout, tcp::socket& socket, task<result<void>> work) {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer(co_await asio::this_coro::executor, timeout);
    auto first = co_await (std::move(work) || timer.async_wait(as_result));
    if (first.index() == 0) co_return std::get<0>(std::move(first));
    boost::system::error_code ignored;
    socket.close(ignored);
    co_return fail(errc::unavailable, "the peer did not answer in time");
}

task<result<void>> resolve_and_connect(tcp::socket& socket, std::string host, std::uint16_t port) {
    tcp::resolver resolver(co_await asio::this_coro::executor);
    auto [resolve_error, places] = co_await resolver.async_resolve(host, std::to_string(port), as_result);
    if (resolve_error)
        co_return fail(errc::unavailable,
                       fmt::format("cannot resolve {}: {}", host, resolve_error.message()));
    auto last = asio::error::make_error_code(asio::error::host_not_found);
    for (const auto& place : places) {
        boost::system::error_code ignored;
        socket.close(ignored);
        auto [ec] = co_await socket.async_connect(place.endpoint(), as_result);
        if (!ec) {
            socket.set_option(tcp::no_delay(true), ignored);
            co_return result<void>{};
        }
        last = ec;
    }
    co_return fail(errc::unavailable, fmt::format("cannot connect to {}:{}: {}", host, port, last.message()));
}

}  // namespace

task<result<void>> handshake_as_caller(tcp::socket& socket, asio::thread_pool& pool, const peer_trust& trust,
                                       std::string role) {
    co_return co_await within(trust.timeout, socket, call_in(socket, pool, trust, std::move(role)));
}

task<result<void>> handshake_as_listener(tcp::socket& socket, asio::thread_pool& pool,
                                         const peer_trust& trust, std::string role) {
    co_return co_await within(trust.timeout, socket, listen_in(socket, pool, trust, std::move(role)));
}

task<result<tcp::socket>> connect_peer(std::string host, std::uint16_t port, asio::thread_pool& pool,
                                       const peer_trust& trust, std::string role) {
    tcp::socket socket(co_await asio::this_coro::executor);
    BANYAN_CO_CHECK(co_await within(trust.timeout, socket, resolve_and_connect(socket, host, port)));
    BANYAN_CO_CHECK(co_await handshake_as_caller(socket, pool, trust, std::move(role)));
    co_return socket;
}

}  // namespace banyan
