// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/channel.hpp"

#include <algorithm>
#include <cstring>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <netinet/tcp.h>

#include "common/crc32c.hpp"
#include "common/uncached_copy.hpp"

namespace banyan::peer {

using namespace asio::experimental::awaitable_operators;

namespace {

constexpr std::size_t worth_a_thread = 64 * 1024;  // above; else arithmetic takes less than changing threads
constexpr std::size_t piece_bytes = 256 * 1024;    // stays in the cache between the socket and the look at it
constexpr std::size_t looked_at_once = 16 * 1024;  // by the cipher and by the checksum: stays in the cache
constexpr std::size_t read_ahead = 8 * 1024;
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

void wake_at(int fd, std::size_t bytes) {
    const auto least = static_cast<int>(bytes);
    ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

// A large body is waited for by the piece: to be woken for each packet costs either end more than the packet,
// for whose process wakes another one waits for the other processor. Never for more than is still to come.
task<result<void>> read_pieces(asio::ip::tcp::socket& socket, std::span<std::byte> into) {
    while (!into.empty()) {
        wake_at(socket.native_handle(), std::min(into.size(), piece_bytes));
        const auto buffer = asio::buffer(into.data(), into.size());
        const auto [ec, got] = co_await socket.async_read_some(buffer, as_result);
        if (ec) co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
        into = into.subspan(got);
    }
    wake_at(socket.native_handle(), 1);
    co_return result<void>{};
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

bool channel::has_ended() {
    std::byte next{};
    const auto n = ::recv(socket_.native_handle(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

task<result<void>> channel::write_frame(std::uint16_t type, nlohmann::json meta,
                                        std::span<const std::byte> body, std::uint32_t* crc) {
    auto text = meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > wire::max_meta || body.size() > wire::max_body)
        co_return fail(errc::internal, "a message is longer than the protocol allows");
    const auto head = wire::encode_header(
        {type, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(body.size())});
    const auto plain = std::as_writable_bytes(std::span(text));
    const auto text_tag = sending_.seal(head, plain, encrypt_ ? plain.data() : nullptr);
    const lead before{asio::buffer(head), asio::buffer(text), asio::buffer(text_tag)};
    if (body.empty()) co_return co_await send(before);
    co_return co_await send_body(before, body, crc);
}

// A short message is one look at the socket, whatever it is made of.
task<result<void>> channel::read(std::span<std::byte> into) {
    for (;;) {
        const auto n = std::min(into.size(), ahead_to_ - ahead_from_);
        std::copy_n(ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_from_), n, into.begin());
        ahead_from_ += n;
        into = into.subspan(n);
        if (into.empty()) co_return result<void>{};
        if (into.size() >= read_ahead) co_return co_await read_pieces(socket_, into);
        ahead_.resize(read_ahead);
        const auto [ec, got] = co_await socket_.async_read_some(asio::buffer(ahead_), as_result);
        if (ec) co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
        ahead_from_ = 0;
        ahead_to_ = got;
    }
}

task<result<void>> channel::send(std::span<const asio::const_buffer> parts) {
    if (auto [ec, n] = co_await asio::async_write(socket_, parts, wire::all_of_it, as_result); ec)
        co_return fail(errc::unavailable, "cannot send to the peer: " + ec.message());
    co_return result<void>{};
}

// What leaves for the piece: what it was when it was looked at, or the encryption of that.
task<std::span<const std::byte>> channel::seal_piece(std::span<const std::byte> piece,
                                                     std::vector<std::byte>& scratch, std::uint32_t* crc) {
    scratch.resize(std::max(scratch.size(), piece.size()));
    const auto work = [this, piece, crc, out = std::span(scratch)] {
        for (std::size_t at = 0; at < piece.size(); at += looked_at_once) {
            const auto part = out.subspan(at, std::min(looked_at_once, piece.size() - at));
            std::memcpy(part.data(), piece.data() + at, part.size());
            if (crc) *crc = crc32c(part, *crc);
            sending_.seal_piece(part, encrypt_ ? part.data() : nullptr);
        }
        return true;
    };
    if (!encrypt_ || piece.size() <= worth_a_thread || !pool_)
        work();
    else
        co_await run_blocking(*pool_, work);
    co_return std::span<const std::byte>(scratch).first(piece.size());
}

// To encrypt takes as long as to send: one piece is encrypted while the one before it leaves.
task<result<void>> channel::send_body(lead before, std::span<const std::byte> body, std::uint32_t* crc) {
    if (crc) *crc = 0;
    sending_.begin_seal({});
    auto piece = body.first(std::min(piece_bytes, body.size()));
    auto out = co_await seal_piece(piece, scratch_[0], crc);
    for (std::size_t at = piece.size(), turn = 1; at < body.size(); at += piece.size(), ++turn) {
        const std::array<asio::const_buffer, 4> parts{before[0], before[1], before[2],
                                                      asio::buffer(out.data(), out.size())};
        before = {};
        piece = body.subspan(at, std::min(piece_bytes, body.size() - at));
        auto sending = send(parts);
        auto sealing = seal_piece(piece, scratch_[encrypt_ ? turn % scratch_.size() : 0], crc);
        if (encrypt_) {
            const auto [sent, next] = co_await (std::move(sending) && std::move(sealing));
            if (!sent) co_return std::unexpected(sent.error());
            out = next;
        } else {
            BANYAN_CO_CHECK(co_await std::move(sending));
            out = co_await std::move(sealing);
        }
    }
    const auto t = sending_.end_seal();
    const std::array<asio::const_buffer, 5> parts{before[0], before[1], before[2],
                                                  asio::buffer(out.data(), out.size()), asio::buffer(t)};
    co_return co_await send(parts);
}

// Reads the tag that follows and holds it against what came before.
task<result<void>> channel::check(std::span<const std::byte> clear, std::span<std::byte> text) {
    tag t{};
    BANYAN_CO_CHECK(co_await read(t));
    if (receiving_.open(clear, text, t, encrypt_)) co_return result<void>{};
    close();
    co_return not_from_the_peer();
}

task<void> channel::open_piece(std::span<std::byte> piece, std::uint32_t* crc, std::byte* place) {
    const auto work = [this, piece, crc, place] {
        for (std::size_t at = 0; at < piece.size(); at += looked_at_once) {
            const auto part = piece.subspan(at, std::min(looked_at_once, piece.size() - at));
            receiving_.open_piece(part, encrypt_);
            if (crc) *crc = crc32c(part, *crc);
            if (place) uncached_copy({place + at, part.size()}, part);
        }
        return true;
    };
    if (!encrypt_ || piece.size() <= worth_a_thread || !pool_)
        work();
    else
        co_await run_blocking(*pool_, work);
}

// To decrypt takes as long as to receive: one piece is decrypted while the next one comes in. What is only
// authenticated is looked at where it came in, while it is in that core's cache; a large body is placed from
// there, past the cache.
task<result<void>> channel::read_and_open(std::span<std::byte> into, std::uint32_t* crc, bool into_shared) {
    const bool by_way = into_shared || (!encrypt_ && into.size() > piece_bytes);
    const auto piece_of = [&](std::size_t at, std::size_t turn) {
        const auto n = std::min(piece_bytes, into.size() - at);
        if (!by_way) return into.subspan(at, n);
        auto& own = arrived_[encrypt_ ? turn % arrived_.size() : 0];
        own.resize(std::max(own.size(), n));
        return std::span(own).first(n);
    };
    auto piece = piece_of(0, 0);
    BANYAN_CO_CHECK(co_await read(piece));
    std::size_t at = 0;
    for (std::size_t turn = 1; at + piece.size() < into.size(); ++turn) {
        const auto next = piece_of(at + piece.size(), turn);
        auto opening = open_piece(piece, crc, by_way ? into.data() + at : nullptr);
        auto reading = read(next);
        if (encrypt_) {
            BANYAN_CO_CHECK(co_await (std::move(reading) && std::move(opening)));
        } else {
            co_await std::move(opening);
            BANYAN_CO_CHECK(co_await std::move(reading));
        }
        at += piece.size();
        piece = next;
    }
    co_await open_piece(piece, crc, by_way ? into.data() + at : nullptr);
    co_return result<void>{};
}

task<result<std::pair<wire::header, nlohmann::json>>> channel::read_head(std::size_t most_meta) {
    std::array<std::byte, wire::header_bytes> head{};
    BANYAN_CO_CHECK(co_await read(head));
    BANYAN_CO_TRY(const auto h, wire::decode_header(head));
    if (h.meta_bytes > most_meta)
        co_return fail(errc::invalid_input, "a message is longer than it may be here");
    const auto take = [this](auto into) { return read(into); };
    BANYAN_CO_TRY(auto text, co_await wire::read_announced_by(take, h.meta_bytes));
    BANYAN_CO_CHECK(co_await check(head, text));
    BANYAN_CO_TRY(auto meta, wire::decode_meta(text));
    co_return std::pair(h, std::move(meta));
}

task<result<void>> channel::read_body(std::span<std::byte> into, std::uint32_t* crc, bool into_shared) {
    if (crc) *crc = 0;
    receiving_.begin_open({});
    BANYAN_CO_CHECK(co_await read_and_open(into, crc, into_shared));
    tag t{};
    BANYAN_CO_CHECK(co_await read(t));
    if (receiving_.end_open(t)) co_return result<void>{};
    close();
    co_return not_from_the_peer();
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
