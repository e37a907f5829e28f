// SPDX-License-Identifier: BSD-3-Clause
//
// Who may hold a connection of a daemon's TCP port before and after he has proved who he is. Anybody on the
// network can connect: what he gets before the proof is one of few places for a short time, and when they are
// all taken the longest waiting leaves. Peers that have proved themselves are counted apart, so that nobody
// else can lock them out. Not thread-safe: on the daemon's io_context.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>

namespace banyan::peer {

struct admission_limits {
    std::size_t waiting = 1024;            ///< connections of all addresses that have not proved anything yet
    std::size_t waiting_per_address = 32;  ///< an IPv6 address counts as its /64 network
    std::size_t proven = 8192;
    /// Only from source ports below 1024, which on a host of ours root alone can take.
    bool reserved_port_only = false;
};

constexpr std::uint16_t first_unreserved_port = 1024;

/// Made with std::make_shared: places keep it alive.
class admission : public std::enable_shared_from_this<admission> {
    struct entry {
        std::string network;
        std::function<void()> close;
    };

  public:
    explicit admission(admission_limits limits) : limits_(limits) {}

    /// A connection's place, which it leaves when this is destroyed.
    class place {
      public:
        place(std::shared_ptr<admission> owner, std::list<entry>::iterator at)
            : owner_(std::move(owner)), at_(at) {}
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        ~place() { leave(); }
        /// The peer has proved who he is. False when there are too many who have.
        bool prove();

      private:
        void leave();
        std::shared_ptr<admission> owner_;
        std::list<entry>::iterator at_;  // while it waits
        bool proven_ = false;
    };

    /// A place for a connection from `from`, or nothing when it has to be closed at once. `close` ends the
    /// connection when its place is needed for another.
    std::unique_ptr<place> enter(const boost::asio::ip::tcp::endpoint& from, std::function<void()> close);

    std::size_t waiting() const { return waiting_.size(); }
    std::size_t proven() const { return proven_; }

  private:
    void make_room(const std::string& network);
    void forget(std::list<entry>::iterator at);

    const admission_limits limits_;
    std::list<entry> waiting_;  // oldest first
    std::map<std::string, std::size_t> per_network_;
    std::size_t proven_ = 0;
};

}  // namespace banyan::peer
