// SPDX-License-Identifier: BSD-3-Clause
//
// How many connections users may hold on the local socket, so that none of them locks out the others or root,
// and descriptors kept back for when the process has no others left. Plain data, on the daemon's thread.
#pragma once

#include <array>
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
    /// Root is not counted. A user gets half of `total`; all who have no session here share an eighth of it:
    /// one person may have thousands of uids (/etc/subuid).
    explicit local_limits(std::uint32_t total) : total_(total) {}
    /// From the process's descriptor limit: each attached rank takes up to three.
    static std::uint32_t total_for(std::uint64_t descriptors);

    enum class verdict { come, make_room, refuse };
    /// Counts a connection of `uid` unless refused. make_room: somebody else holds more than his share, see
    /// gives_way(); one of his idle connections is to be closed.
    verdict enter(uid_t uid, bool has_session);
    void leave(uid_t uid, clock::time_point now = clock::now());
    /// Of the newest verdict make_room: whose connection it is.
    std::optional<uid_t> gives_way() const { return gives_way_; }
    /// What asks for something; what says that a rank has saved, which is cheap and comes often; and what is
    /// a request as well, but costs as much as its answer has bytes.
    enum class demand { request, note, status };
    /// How long a request of one of `uid`'s connections waits before it is heard, so that whoever asks
    /// without end on hundreds of them takes turns with everybody else. Root waits never.
    clock::duration turn(uid_t uid, demand what, clock::time_point now);
    /// An answer to demand::status has so many bytes. What it costs beyond the one before is paid later.
    void answered(uid_t uid, std::size_t bytes);
    /// Answers of `uid` that wait to be read. `bytes` may be negative: they have been.
    void under_way(uid_t uid, std::int64_t bytes);
    /// Whether so much waits for him that nothing long is said before he has read.
    bool reads_too_little(uid_t uid) const;
    std::uint32_t per_user() const { return total_ / 2; }
    std::uint32_t of_strangers() const { return total_ / 8; }

  private:
    struct user {
        std::uint32_t connections = 0;
        bool stranger = false;                    ///< without a session when the newest of them came
        std::array<clock::time_point, 2> next{};  ///< requests and notes: when his next one is in time
        std::uint32_t price = 1;                  ///< of his next status, in requests
        std::int64_t under_way = 0;
    };
    std::optional<uid_t> heaviest(bool among_strangers) const;
    std::uint32_t strangers() const;

    std::uint32_t total_, count_ = 0;
    std::map<uid_t, user> of_;
    std::optional<uid_t> gives_way_;
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
