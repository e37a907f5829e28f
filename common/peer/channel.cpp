// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/channel.hpp"

#include <algorithm>

#include <netinet/tcp.h>

namespace banyan::peer {
namespace {

constexpr std::size_t worth_a_thread = 64 * 1024;  // below, arithmetic takes less than changing threads
constexpr unsigned silence_ms = 30'000;

result<void> not_from_the_peer() {
    return fail(errc::denied, "a message on the connection is not from its peer: the connection is given up",
                "something between the two nodes changes what they send");
}

struct life_signs {
    int idle_s, every_s, times;
    unsigned silence;  ///< ms, of what was sent
};

void look_for_life(int fd, const life_signs& signs) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &signs.idle_s, sizeof signs.idle_s);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &signs.every_s, sizeof signs.every_s);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &signs.times, sizeof signs.times);
    ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &signs.silence, sizeof signs.silence);
}

}  // namespace

channel::channel(asio::ip::tcp::socket socket, const options& o)
    : socket_(std::move(socket)),
      sending_(o.caller ? o.keys.from_caller : o.keys.from_listener),
      receiving_(o.caller ? o.keys.from_listener : o.keys.from_caller),
      encrypt_(o.encrypt),
      node_(o.node),
      pool_(o.pool) {
    // A peer that is gone without a word must not hold its place for hours.
    boost::system::error_code ignored;
    address_ = socket_.remote_endpoint(ignored).address().to_string();
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    look_for_life(socket_.native_handle(), {30, 10, 3, silence_ms});
}

void channel::expect_life_within(std::chrono::seconds most) {
    const auto seconds = std::max(2, static_cast<int>(most.count()));
    look_for_life(socket_.native_handle(), {1, 1, seconds - 1, static_cast<unsigned>(seconds) * 1000});
}

void channel::close() {
    boost::system::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
}

task<result<void>> channel::write_frame(std::uint16_t type, nlohmann::json meta,
                                        std::span<const std::byte> body) {
    auto text = meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > wire::max_meta || body.size() > wire::max_body)
        co_return fail(errc::internal, "a message is longer than the protocol allows");
    const auto head = wire::encode_header(
        {type, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(body.size())});
    const auto plain = std::as_writable_bytes(std::span(text));
    const auto text_tag = sending_.seal(head, plain, encrypt_ ? plain.data() : nullptr);
    tag body_tag{};
    auto outgoing = body;
    if (!body.empty()) {
        if (encrypt_) scratch_.resize(std::max(scratch_.size(), body.size()));
        std::byte* const out = encrypt_ ? scratch_.data() : nullptr;
        if (body.size() >= worth_a_thread && pool_) {
            const auto work = [this, body, out] { return sending_.seal({}, body, out); };
            body_tag = co_await run_blocking(*pool_, work);
        } else {
            body_tag = sending_.seal({}, body, out);
        }
        if (out) outgoing = std::span(scratch_).first(body.size());
    }
    const std::array<asio::const_buffer, 5> parts{
        asio::buffer(head), asio::buffer(text), asio::buffer(text_tag),
        asio::buffer(outgoing.data(), outgoing.size()),
        asio::buffer(body_tag.data(), body.empty() ? 0 : body_tag.size())};
    if (auto [ec, n] = co_await asio::async_write(socket_, parts, as_result); ec)
        co_return fail(errc::unavailable, "cannot send to the peer: " + ec.message());
    co_return result<void>{};
}

// Reads the tag that follows and holds it against what came before.
task<result<void>> channel::check(std::span<const std::byte> clear, std::span<std::byte> text) {
    tag t{};
    BANYAN_CO_CHECK(co_await wire::read_bytes(socket_, t));
    bool whole = false;
    if (text.size() >= worth_a_thread && pool_) {
        const auto work = [this, clear, text, t] { return receiving_.open(clear, text, t, encrypt_); };
        whole = co_await run_blocking(*pool_, work);
    } else {
        whole = receiving_.open(clear, text, t, encrypt_);
    }
    if (whole) co_return result<void>{};
    close();
    co_return not_from_the_peer();
}

task<result<std::pair<wire::header, nlohmann::json>>> channel::read_head(std::size_t most_meta) {
    std::array<std::byte, wire::header_bytes> head{};
    BANYAN_CO_CHECK(co_await wire::read_bytes(socket_, head));
    BANYAN_CO_TRY(const auto h, wire::decode_header(head));
    if (h.meta_bytes > most_meta)
        co_return fail(errc::invalid_input, "a message is longer than it may be here");
    BANYAN_CO_TRY(auto text, co_await wire::read_announced(socket_, h.meta_bytes));
    BANYAN_CO_CHECK(co_await check(head, text));
    BANYAN_CO_TRY(auto meta, wire::decode_meta(text));
    co_return std::pair(h, std::move(meta));
}

task<result<void>> channel::read_body(std::span<std::byte> into) {
    BANYAN_CO_CHECK(co_await wire::read_bytes(socket_, into));
    co_return co_await check({}, into);
}

task<result<wire::frame>> channel::read_frame(std::size_t most_meta) {
    BANYAN_CO_TRY(auto head, co_await read_head(most_meta));
    if (head.first.body_bytes != 0)
        co_return fail(errc::invalid_input, "the peer sent a body where none belongs");
    wire::frame out;
    out.type = head.first.type;
    out.meta = std::move(head.second);
    co_return std::move(out);
}

}  // namespace banyan::peer
