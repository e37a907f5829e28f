// SPDX-License-Identifier: BSD-3-Clause
//
// The calling end of a connection to another node's daemon: connects when needed, one request at a time,
// remembers for a moment that a peer is dead so that nobody waits for it twice.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ckptd/daemon/patience.hpp"
#include "ckptd/net/async.hpp"
#include "ckptd/net/peer.hpp"
#include "common/peer/handshake.hpp"

namespace banyan::ckpt {

struct link_options {
    std::string node;  ///< who must answer
    std::string host;  ///< where
    std::uint16_t port = 0;
    const peer::settings* peer = nullptr;
};

using wire::read_head;

class link : public std::enable_shared_from_this<link> {
  public:
    link(asio::any_io_executor executor, link_options options);

    /// One request, one reply; a refusal by the peer comes as its error. errc::unavailable = the peer is
    /// dead. `body` must stay.
    task<result<nlohmann::json>> call(peer_message type, nlohmann::json meta,
                                      std::chrono::milliseconds timeout,
                                      std::span<const std::byte> body = {});

    /// A word that has no reply. That it has left says nothing of whether it comes; errc::unavailable = it
    /// did not even leave. `body` must stay.
    task<result<void>> tell(peer_message type, nlohmann::json meta, std::chrono::milliseconds timeout,
                            std::span<const std::byte> body = {});

    enum class put_result { done, busy };
    struct put_place {
        bool new_memory = false;  ///< the peer may have to make memory for it first
        bool was_busy = false;    ///< it had no room a moment ago
    };
    struct put_count {
        std::uint64_t bytes = 0;
        std::uint64_t damaged = 0;  ///< chunks that arrived as they left, and not as the sums say
    };
    /// Sends a shard and has it checked. `image` must stay; `wanted` says whether it still matters.
    task<result<put_result>> put(nlohmann::json meta, std::span<const std::byte> image, put_place place,
                                 std::function<bool()> wanted, put_count* sent);
    /// Where a shard of so many bytes may be put.
    using room = std::function<task<result<std::span<std::byte>>>(std::uint64_t bytes)>;
    /// Fetches a shard into what `into` gives, once its length is known, holds every chunk against its
    /// checksum in `chunks` as it comes, and returns the length. errc::unavailable = the peer does not
    /// answer; errc::exhausted = there is no room; else it does not have the shard, or not undamaged.
    task<result<std::uint64_t>> get(nlohmann::json meta, room into, std::vector<std::uint32_t>* chunks);

    /// One chunk of it, into the memory that it fills, as it comes: nothing is held against a checksum.
    /// Errors as those of get().
    task<result<void>> get_chunk(nlohmann::json meta, std::size_t chunk, std::span<std::byte> into);

    /// No request has been answered for longer than a daemon needs that its keeper starts again.
    bool is_silent() const;
    /// When the part of a shard that is waited for now is later than it usually is; `max` when none is.
    clock::time_point late_at() const;
    bool is_late() const { return late_at() <= clock::now(); }
    /// Asks a silent peer again and again until it is back, as long as `wanted` holds. One at a time; returns
    /// at once when one is under way.
    task<void> probe(std::function<bool()> wanted);

    void close();

  private:
    task<result<void>> connect();
    task<result<void>> send(peer_message type, nlohmann::json meta, std::span<const std::byte> body);
    task<result<nlohmann::json>> exchange(peer_message type, nlohmann::json meta,
                                          std::span<const std::byte> body = {});
    task<result<put_result>> put_on(nlohmann::json meta, std::span<const std::byte> image, put_place place,
                                    std::function<bool()> wanted, put_count* sent);
    task<result<std::uint64_t>> get_on(nlohmann::json meta, room into, std::vector<std::uint32_t>* chunks);
    task<result<void>> get_chunk_on(nlohmann::json meta, std::span<std::byte> into);
    void watch(clock::duration timeout);
    void note(bool answered);
    /// What is waited for while a shard is sent. Each has its own usual time.
    enum class part : std::size_t { place, chunk, check };
    void await_part(part p, bool new_memory = false);
    void got_part();
    patience& usual(part p) { return usual_[static_cast<std::size_t>(p)]; }
    clock::duration limit(const patience::bounds& b) const;

    asio::any_io_executor executor_;
    link_options options_;
    std::unique_ptr<peer::channel> channel_;
    timer watchdog_;
    async_lock lock_;
    clock::time_point dead_until_{};
    std::string dead_because_;
    std::optional<clock::time_point> silent_since_;  ///< the beginning of the first request without an answer
    std::optional<clock::time_point> waits_since_;   ///< for the part that is waited for now
    part awaited_ = part::place;
    bool memory_is_made_ = false;  ///< for it: nobody knows how long that takes
    std::array<patience, 3> usual_;
    bool probing_ = false;
};

}  // namespace banyan::ckpt
