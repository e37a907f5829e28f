// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/handshake.hpp"

#include <algorithm>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "common/json_fields.hpp"
#include "common/munge.hpp"
#include "common/peer/admission.hpp"
#include "common/peer/connect.hpp"
#include "common/peer/statement.hpp"
#include "common/timer.hpp"

namespace banyan::peer {
namespace {

using asio::ip::tcp;
using json = nlohmann::json;
using opened = result<std::unique_ptr<channel>>;

enum type : std::uint16_t { hello = 0xff01, challenge, proof, welcome, refused };

// Before the proof a peer is anybody: what it may make us read and hold is a few kilobytes.
constexpr std::size_t most_meta = 8 * 1024;
constexpr std::size_t most_credential = 4 * 1024;
constexpr std::size_t most_role = 64;
constexpr std::size_t most_reason = 400;

task<result<json>> expect(tcp::socket& socket, type wanted) {
    BANYAN_CO_TRY(auto frame, co_await wire::read_frame(socket, most_meta, 0));
    if (frame.type == refused)
        if (auto e = wire::error_from(frame.meta)) {
            e->what = "the peer refuses: " + e->what.substr(0, most_reason);
            e->hint.resize(std::min(e->hint.size(), most_reason));
            co_return std::unexpected(std::move(*e));
        }
    if (frame.type != wanted) co_return fail(errc::invalid_input, "the peer broke the handshake");
    co_return std::move(frame.meta);
}

task<result<void>> send_proof(tcp::socket& socket, const settings& o, type as, std::string text) {
    const auto work = [&o, text] { return munge::encode(o.munge_socket, text, ::geteuid()); };
    BANYAN_CO_TRY(auto credential, co_await run_blocking(*o.munge_pool, work));
    json meta = json::object();
    meta["credential"] = std::move(credential);
    co_return co_await wire::write_frame(socket, as, std::move(meta));
}

// Whether `meta` holds the credential of a trusted user who states the same as we.
task<result<void>> check_proof(const settings& o, json meta, statement ours, bool by_caller) {
    BANYAN_CO_TRY(const auto text, json_fields(meta).text("credential", most_credential));
    const auto work = [&o, text] { return munge::decode(o.munge_socket, text); };
    BANYAN_CO_TRY(const auto credential, co_await run_blocking(*o.munge_pool, work));
    if (std::find(o.trusted.begin(), o.trusted.end(), credential.uid) == o.trusted.end())
        co_return fail(errc::denied,
                       fmt::format("the peer runs under uid {}, which is not trusted", credential.uid));
    if (credential.payload != ours.text(by_caller))
        co_return std::unexpected(ours.difference(credential.payload, by_caller));
    co_return result<void>{};
}

struct introduction {
    std::string node;
    key public_key;
    bool encrypt;
};

result<introduction> read_introduction(const json& meta) {
    const auto protocol = json_fields(meta).number("protocol", UINT32_MAX);
    if (!protocol || *protocol != protocol_version)
        return fail(errc::invalid_input, "the peer speaks another version of the handshake",
                    "install the same banyan release on all nodes");
    introduction out;
    BANYAN_TRY(out.node, json_fields(meta).text("node", max_node_name));
    BANYAN_CHECK(check_node_name(out.node));
    BANYAN_TRY(const auto text, json_fields(meta).text("key", 2 * key_bytes));
    BANYAN_TRY(out.public_key, from_hex(text));
    out.encrypt = meta.contains("encrypt");
    return out;
}

json introduce(const settings& o, const key_pair& ours) {
    json meta = json::object();
    meta["protocol"] = protocol_version;
    meta["node"] = o.node;
    meta["key"] = to_hex(ours.public_key());
    if (o.encrypt) meta["encrypt"] = true;
    return meta;
}

result<void> name_ends(tcp::socket& socket, bool caller, statement& into) {
    boost::system::error_code ec, ec2;
    const auto here = socket.local_endpoint(ec), there = socket.remote_endpoint(ec2);
    if (ec || ec2) return fail(errc::unavailable, "the peer closed the connection");
    into.caller_at = to_text(caller ? here : there);
    into.listener_at = to_text(caller ? there : here);
    return {};
}

opened finish(tcp::socket& socket, const settings& o, const key_pair& ours, const introduction& theirs,
              const statement& agreed, bool caller) {
    BANYAN_TRY(const auto keys, ours.agree(theirs.public_key, agreed.text(true)));
    return std::make_unique<channel>(std::move(socket),
                                     channel::options{keys, caller, agreed.encrypt, theirs.node, o.pool});
}

task<opened> call_in(tcp::socket& socket, const settings& o, std::string wanted) {
    BANYAN_CO_TRY(const auto ours, key_pair::make());
    statement agreed{o.role, o.node, wanted, {}, {}, {}, to_hex(ours.public_key()), {}, false};
    BANYAN_CO_CHECK(name_ends(socket, true, agreed));
    auto greeting = introduce(o, ours);
    greeting["role"] = o.role;
    greeting["wanted"] = wanted;
    BANYAN_CO_CHECK(co_await wire::write_frame(socket, hello, std::move(greeting)));
    BANYAN_CO_TRY(const auto answer, co_await expect(socket, challenge));
    BANYAN_CO_TRY(const auto theirs, read_introduction(answer));
    if (!wanted.empty() && theirs.node != wanted)
        co_return fail(errc::denied, fmt::format("node {} answers in place of {}", theirs.node, wanted));
    agreed.listener = theirs.node;
    agreed.listener_key = to_hex(theirs.public_key);
    agreed.encrypt = o.encrypt || theirs.encrypt;
    BANYAN_CO_CHECK(co_await send_proof(socket, o, proof, agreed.text(true)));
    BANYAN_CO_TRY(auto welcomed, co_await expect(socket, welcome));
    BANYAN_CO_CHECK(co_await check_proof(o, std::move(welcomed), agreed, false));
    co_return finish(socket, o, ours, theirs, agreed, true);
}

// A look whether anybody listens, as banyan-doctor's and a load balancer's, ends before its first byte.
task<bool> says_anything(tcp::socket& socket) {
    std::byte first{};
    const auto [ec, size] =
        co_await socket.async_receive(asio::buffer(&first, 1), tcp::socket::message_peek, as_result);
    co_return ec != asio::error::eof;
}

task<opened> listen_in(tcp::socket& socket, const settings& o) {
    if (!co_await says_anything(socket)) co_return nullptr;
    BANYAN_CO_TRY(const auto ours, key_pair::make());
    BANYAN_CO_TRY(const auto greeting, co_await expect(socket, hello));
    BANYAN_CO_TRY(const auto theirs, read_introduction(greeting));
    BANYAN_CO_TRY(const auto role, json_fields(greeting).text("role", most_role));
    BANYAN_CO_TRY(const auto wanted, json_fields(greeting).text("wanted", max_node_name));
    if (role != o.role) co_return fail(errc::denied, fmt::format("this is {}, not what was called", o.role));
    if (!wanted.empty() && wanted != o.node)
        co_return fail(errc::denied, fmt::format("this is node {}, not the one that was called", o.node));
    statement agreed{o.role, theirs.node, wanted, o.node, {}, {}, {}, to_hex(ours.public_key()), false};
    BANYAN_CO_CHECK(name_ends(socket, false, agreed));
    agreed.caller_key = to_hex(theirs.public_key);
    agreed.encrypt = o.encrypt || theirs.encrypt;
    auto answer = introduce(o, ours);
    BANYAN_CO_CHECK(co_await wire::write_frame(socket, challenge, std::move(answer)));
    BANYAN_CO_TRY(auto proven, co_await expect(socket, proof));
    BANYAN_CO_CHECK(co_await check_proof(o, std::move(proven), agreed, true));
    BANYAN_CO_CHECK(co_await send_proof(socket, o, welcome, agreed.text(false)));
    co_return finish(socket, o, ours, theirs, agreed, false);
}

// What was refused is also said to whoever was refused, so that his log has it.
task<opened> listen_and_say(tcp::socket& socket, const settings& o) {
    auto out = co_await listen_in(socket, o);
    if (!out && out.error().code != errc::unavailable) {
        auto meta = wire::error_meta(out.error());
        co_await wire::write_frame(socket, refused, std::move(meta));
    }
    co_return std::move(out);
}

// Runs `work` against the clock; when time is up the socket is closed, which ends `work`.
template <class T>
task<result<T>> within(std::chrono::milliseconds timeout, tcp::socket& socket, task<result<T>> work) {
    using namespace asio::experimental::awaitable_operators;
    banyan::timer timer(co_await asio::this_coro::executor, timeout);
    auto first = co_await (std::move(work) || timer.async_wait(as_result));
    if (first.index() == 0) {
        auto& done = std::get<0>(first);
        if (!done && socket.is_open()) {
            boost::system::error_code ignored;
            socket.close(ignored);
        }
        co_return std::move(done);
    }
    boost::system::error_code ignored;
    socket.close(ignored);
    co_return fail(errc::unavailable, "the peer did not answer in time");
}

}  // namespace

bool uses_reserved_ports() { return ::geteuid() == 0; }

settings settings::of(std::string role, std::string node, std::string munge_socket, bool encrypt,
                      asio::thread_pool& munge_pool, asio::thread_pool& pool) {
    settings o;
    o.role = std::move(role);
    o.node = std::move(node);
    o.munge_socket = std::move(munge_socket);
    if (::geteuid() != 0) o.trusted.push_back(::geteuid());
    o.encrypt = encrypt;
    o.munge_pool = &munge_pool;
    o.pool = &pool;
    return o;
}

task<opened> accept_peer(tcp::socket& socket, const settings& o) {
    co_return co_await within(o.timeout, socket, listen_and_say(socket, o));
}

task<opened> connect_peer(std::string host, std::uint16_t port, std::string node, const settings& o) {
    tcp::socket socket(co_await asio::this_coro::executor);
    const auto at = fmt::format("{}:{}", host, port);
    auto connected = co_await within(o.timeout, socket, connect_to(socket, host, port));
    if (!connected) co_return std::unexpected(std::move(connected).error());
    auto out = co_await within(o.timeout, socket, call_in(socket, o, std::move(node)));
    if (!out) out.error().what = fmt::format("{}: {}", at, out.error().what);
    co_return std::move(out);
}

}  // namespace banyan::peer
