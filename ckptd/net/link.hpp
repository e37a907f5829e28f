// SPDX-License-Identifier: BSD-3-Clause
//
// The calling end of a connection to another node's daemon: connects when needed, one request at a time,
// remembers for a moment that a peer is dead so that nobody waits for it twice.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "ckptd/net/async.hpp"
#include "ckptd/net/peer.hpp"
#include "common/handshake.hpp"

namespace banyan::ckpt {

struct link_options {
    std::string host;
    std::uint16_t port = 0;
    const peer_trust* trust = nullptr;
    asio::thread_pool* pool = nullptr;
};

/// Reads header and metadata; the body stays in the stream. `max_meta` bounds what a peer may make us
/// allocate.
template <class Stream>
task<result<std::pair<wire::header, nlohmann::json>>> read_head(Stream& stream, std::size_t max_meta) {
    std::array<std::byte, wire::header_bytes> head{};
    if (auto [ec, n] = co_await asio::async_read(stream, asio::buffer(head), as_result); ec)
        co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
    BANYAN_CO_TRY(const auto h, wire::decode_header(head));
    if (h.meta_bytes > max_meta) co_return fail(errc::invalid_input, "a message is longer than it may be");
    std::vector<std::byte> text(h.meta_bytes);
    if (auto [ec, n] = co_await asio::async_read(stream, asio::buffer(text), as_result); ec)
        co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
    BANYAN_CO_TRY(auto meta, wire::decode_meta(text));
    co_return std::pair(h, std::move(meta));
}

template <class Stream>
task<result<void>> read_body(Stream& stream, std::span<std::byte> into) {
    if (auto [ec, n] = co_await asio::async_read(stream, asio::buffer(into.data(), into.size()), as_result);
        ec)
        co_return fail(errc::unavailable, "the peer closed the connection: " + ec.message());
    co_return result<void>{};
}

class link : public std::enable_shared_from_this<link> {
  public:
    link(asio::any_io_executor executor, link_options options);

    /// One request, one reply; a refusal by the peer comes as its error. errc::unavailable = the peer is
    /// dead.
    task<result<nlohmann::json>> call(peer_message type, nlohmann::json meta,
                                      std::chrono::milliseconds timeout);

    enum class put_result { done, busy };
    /// Sends a shard and has it checked. `image` must stay; `wanted` says whether it still matters.
    task<result<put_result>> put(nlohmann::json meta, std::span<const std::byte> image,
                                 std::function<bool()> wanted, std::uint64_t* sent);
    /// Fetches a shard into `into`; returns its length. Checksums are the caller's: they come in `chunks`.
    task<result<std::uint64_t>> get(nlohmann::json meta, std::span<std::byte> into,
                                    std::vector<std::uint32_t>* chunks);

    const std::string& host() const { return options_.host; }
    void close();

  private:
    task<result<void>> connect();
    task<result<nlohmann::json>> exchange(peer_message type, nlohmann::json meta);
    task<result<put_result>> put_on(nlohmann::json meta, std::span<const std::byte> image,
                                    std::function<bool()> wanted, std::uint64_t* sent);
    task<result<std::uint64_t>> get_on(nlohmann::json meta, std::span<std::byte> into,
                                       std::vector<std::uint32_t>* chunks);
    void watch(std::chrono::milliseconds timeout);

    asio::any_io_executor executor_;
    link_options options_;
    std::optional<asio::ip::tcp::socket> socket_;
    asio::steady_timer watchdog_;
    async_lock lock_;
    clock::time_point dead_until_{};
    std::string dead_because_;
};

}  // namespace banyan::ckpt
