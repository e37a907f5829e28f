// SPDX-License-Identifier: BSD-3-Clause
//
// The framing of wire.hpp for coroutines on Boost.Asio. Include only from daemons: Asio is heavy.
#pragma once

#include <algorithm>
#include <array>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "common/blocking_call.hpp"
#include "common/wire.hpp"

namespace banyan {

namespace asio = boost::asio;
template <class T>
using task = asio::awaitable<T>;
/// Completion token of all our asynchronous calls: `auto [ec, n] = co_await ...`, nothing throws.
inline constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

/// Runs a blocking `f` on `pool` and resumes on the caller's executor with its value.
template <class F>
auto run_blocking(asio::thread_pool& pool, F f) -> task<decltype(f())> {
    using value = decltype(f());
    const blocking_call counted;
    co_return co_await asio::co_spawn(
        pool, [](F g) -> task<value> { co_return g(); }(std::move(f)), asio::use_awaitable);
}

namespace wire {

/// Completion condition of a transfer: all of it, in as few system calls as the socket takes. Without one
/// Asio asks for no more than 64 KiB at once.
inline constexpr auto all_of_it = [](const boost::system::error_code& ec, std::size_t) {
    return ec ? std::size_t{0} : std::size_t{max_body};
};

/// Fills `into`.
template <class Stream>
task<result<void>> read_bytes(Stream& stream, std::span<std::byte> into) {
    const auto buffer = asio::buffer(into.data(), into.size());
    if (auto [ec, n] = co_await asio::async_read(stream, buffer, all_of_it, as_result); ec)
        co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
    co_return result<void>{};
}

/// As many bytes as a header announced, by `read`, which fills a span. Memory grows with what has arrived: a
/// header alone costs its sender as much as us.
template <class Read>
task<result<std::vector<std::byte>>> read_announced_by(Read read, std::size_t bytes) {
    constexpr std::size_t first = 16 * 1024;
    std::vector<std::byte> out;
    while (out.size() < bytes) {
        const auto have = out.size();
        out.resize(std::min(bytes, std::max(first, 2 * have)));
        BANYAN_CO_CHECK(co_await read(std::span(out).subspan(have)));
    }
    co_return std::move(out);
}

template <class Stream>
task<result<std::vector<std::byte>>> read_announced(Stream& stream, std::size_t bytes) {
    return read_announced_by([&stream](auto into) { return read_bytes(stream, into); }, bytes);
}

/// Header and metadata; the body, if any, stays in the stream.
template <class Stream>
task<result<std::pair<header, nlohmann::json>>> read_head(Stream& stream, std::size_t most_meta) {
    std::array<std::byte, header_bytes> head{};
    BANYAN_CO_CHECK(co_await read_bytes(stream, head));
    BANYAN_CO_TRY(const auto h, decode_header(head));
    if (h.meta_bytes > most_meta)
        co_return fail(errc::invalid_input, "a message is longer than it may be here");
    BANYAN_CO_TRY(const auto text, co_await read_announced(stream, h.meta_bytes));
    BANYAN_CO_TRY(auto meta, decode_meta(text));
    co_return std::pair(h, std::move(meta));
}

/// A whole frame within limits of the caller's choice, in bytes.
template <class Stream>
task<result<frame>> read_frame(Stream& stream, std::size_t most_meta, std::size_t most_body) {
    BANYAN_CO_TRY(auto head, co_await read_head(stream, most_meta));
    if (head.first.body_bytes > most_body)
        co_return fail(errc::invalid_input, "a message has a longer body than it may have here");
    frame out;
    out.type = head.first.type;
    out.meta = std::move(head.second);
    BANYAN_CO_TRY(out.body, co_await read_announced(stream, head.first.body_bytes));
    co_return std::move(out);
}

/// `body` must stay valid until the task is done. One writer per stream at a time.
template <class Stream>
task<result<void>> write_frame(Stream& stream, std::uint16_t type, nlohmann::json meta,
                               std::span<const std::byte> body = {}) {
    const auto text = meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const auto head = encode_header(
        {type, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(body.size())});
    const std::array<asio::const_buffer, 3> parts{asio::buffer(head), asio::buffer(text),
                                                  asio::buffer(body.data(), body.size())};
    if (auto [ec, n] = co_await asio::async_write(stream, parts, all_of_it, as_result); ec)
        co_return fail(errc::unavailable, "cannot send to the peer: " + ec.message());
    co_return result<void>{};
}

}  // namespace wire
}  // namespace banyan
