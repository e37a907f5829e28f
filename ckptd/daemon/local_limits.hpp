// SPDX-License-Identifier: BSD-3-Clause
//
// How many connections users may hold on the local socket, so that none of them locks out the others or root,
// and descriptors kept back for when the process has no others left. Plain data, on the daemon's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "common/clock.hpp"
#include "common/fd.hpp"

namespace banyan::ckpt {

class local_limits {
  public:
    /// Root is not counted. A user gets half of `total`.
    explicit local_limits(std::uint32_t total) : total_(total) {}
    /// From the process's descriptor limit: each attached rank takes up to three.
    static std::uint32_t total_for(std::uint64_t descriptors);

    enum class verdict { come, make_room, refuse };
    /// Counts a connection of `uid` unless refused. make_room: somebody else holds more than his share, see
    /// heaviest(); one of his idle connections is to be closed.
    verdict enter(uid_t uid);
    void leave(uid_t uid);
    /// How long one of `uid`'s connections waits before its next request is read, so that whoever asks
    /// without end on hundreds of them takes turns with everybody else. Root waits never.
    clock::duration turn(uid_t uid, clock::time_point now);
    /// The user with the most connections.
    std::optional<uid_t> heaviest() const;
    std::uint32_t per_user() const { return total_ / 2; }

  private:
    std::uint32_t total_, count_ = 0;
    struct user {
        std::uint32_t connections = 0;
        clock::time_point next{};  ///< when his next request is in time
    };
    std::map<uid_t, user> of_;
};

/// A few descriptors held back. spend() frees them when the process is at its limit; refill() takes them
/// again and says whether all are there.
class descriptor_reserve {
  public:
    descriptor_reserve() { refill(); }
    void spend() { held_.clear(); }
    bool refill();

  private:
    static constexpr std::size_t wanted = 16;
    std::vector<unique_fd> held_;
};

}  // namespace banyan::ckpt
