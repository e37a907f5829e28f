// SPDX-License-Identifier: BSD-3-Clause
//
// The framing of wire.hpp for coroutines on Boost.Asio. Include only from daemons: Asio is heavy.
#pragma once

#include <array>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

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
    co_return co_await asio::co_spawn(
        pool, [](F g) -> task<value> { co_return g(); }(std::move(f)), asio::use_awaitable);
}

namespace wire {

template <class Stream>
task<result<frame>> read_frame(Stream& stream) {
    std::array<std::byte, header_bytes> head{};
    if (auto [ec, n] = co_await asio::async_read(stream, asio::buffer(head), as_result); ec)
        co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
    BANYAN_CO_TRY(const auto h, decode_header(head));
    std::vector<std::byte> meta(h.meta_bytes);
    frame out;
    out.type = h.type;
    out.body.resize(h.body_bytes);
    const std::array<asio::mutable_buffer, 2> parts{asio::buffer(meta), asio::buffer(out.body)};
    if (auto [ec, n] = co_await asio::async_read(stream, parts, as_result); ec)
        co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
    BANYAN_CO_TRY(out.meta, decode_meta(meta));
    co_return out;
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
    if (auto [ec, n] = co_await asio::async_write(stream, parts, as_result); ec)
        co_return fail(errc::unavailable, "cannot send to the peer: " + ec.message());
    co_return result<void>{};
}

}  // namespace wire
}  // namespace banyan
