// SPDX-License-Identifier: BSD-3-Clause
//
// A connection between two daemons after the handshake: the frames of common/wire, each bound to this very
// connection and its place in it under keys that only the two ends have. What was not sent by the other end,
// in this order, ends the connection before anybody acts on it. A frame here is
//
//     header (16) | metadata | tag (16) | body | tag (16)
//
// the last two only where there is a body. With encryption metadata and body are unreadable to others, else
// they are authenticated only. One reader and one writer at a time; all on one thread but for the encryption
// of large bodies: the given pool does it for one piece while the next one leaves or comes in. To
// authenticate takes less than it takes to bring a piece to another core's cache.
//
// A body that leaves may lie in memory that somebody else writes to meanwhile (a rank's buffer). So each
// piece of it is taken out of there once, and what was taken is summed up, sealed and sent: whatever is
// written there harms that body alone, and not the connection, on which others' messages follow.
#pragma once

#include <array>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "common/peer/keys.hpp"
#include "common/wire_async.hpp"

namespace banyan::peer {

class channel {
  public:
    struct options {
        channel_keys keys;
        bool caller = false;  ///< which of the keys is ours
        bool encrypt = false;
        std::string node;  ///< the name under which the other end proved itself
        asio::thread_pool* pool = nullptr;
    };
    channel(asio::ip::tcp::socket socket, const options& o);

    const std::string& node() const { return node_; }
    /// Of the other end, without the port; as it was when the connection was made.
    const std::string& address() const { return address_; }
    bool encrypted() const { return encrypt_; }
    bool is_open() const { return socket_.is_open(); }
    /// Ends the connection when the other end's host has given no sign of life for so long, rather than for
    /// half a minute. Its kernel gives them, however busy the process is.
    void expect_life_within(std::chrono::seconds most);
    void close();
    /// The other end has closed it, or said what nobody has asked for: for who waits for nothing on it.
    bool has_ended();
    asio::any_io_executor executor() { return socket_.get_executor(); }

    /// `body` (at most wire::max_body) must stay valid until the task is done. `crc` gets the CRC-32C of what
    /// has left.
    task<result<void>> write_frame(std::uint16_t type, nlohmann::json meta,
                                   std::span<const std::byte> body = {}, std::uint32_t* crc = nullptr);
    /// Header and metadata. Where the header has a body, read_body must follow.
    task<result<std::pair<wire::header, nlohmann::json>>> read_head(std::size_t most_meta = wire::max_meta);
    /// `into` is as long as the header said. Until this returns its content is not to be trusted. `crc` gets
    /// the CRC-32C of what has come, for which nobody need look at it a second time. `into_shared`: others
    /// may write there meanwhile; what comes is looked at before it gets there.
    task<result<void>> read_body(std::span<std::byte> into, std::uint32_t* crc = nullptr,
                                 bool into_shared = false);
    /// A frame that has no body.
    task<result<wire::frame>> read_frame(std::size_t most_meta = wire::max_meta);

  private:
    using lead = std::array<asio::const_buffer, 3>;  ///< what goes before a body
    task<result<void>> read(std::span<std::byte> into);
    task<result<void>> send(std::span<const asio::const_buffer> parts);
    task<result<void>> send_body(lead before, std::span<const std::byte> body, std::uint32_t* crc);
    task<std::span<const std::byte>> seal_piece(std::span<const std::byte> piece,
                                                std::vector<std::byte>& scratch, std::uint32_t* crc);
    task<result<void>> check(std::span<const std::byte> clear, std::span<std::byte> text);
    task<result<void>> read_and_open(std::span<std::byte> into, std::uint32_t* crc, bool into_shared);
    task<void> open_piece(std::span<std::byte> piece, std::uint32_t* crc, std::byte* place = nullptr);

    asio::ip::tcp::socket socket_;
    frame_cipher sending_, receiving_;
    const bool encrypt_;
    const std::string node_;
    std::string address_;
    asio::thread_pool* pool_;
    std::vector<std::byte> ahead_;                   // come in with what was read before it
    std::size_t ahead_from_ = 0, ahead_to_ = 0;      // of that, not read yet
    std::array<std::vector<std::byte>, 2> scratch_;  // pieces of a body as they leave
    std::array<std::vector<std::byte>, 2> arrived_;  // and as they have come, where they are placed later
};

}  // namespace banyan::peer
