// SPDX-License-Identifier: BSD-3-Clause
//
// The daemon's side of its keeper: what has been handed over, and what is to be held from now on. Without a
// keeper all calls do nothing. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ckptd/keeper/messages.hpp"

namespace banyan::ckpt::keeper {

struct handed_over {
    contents what = contents::shards;
    std::uint64_t number = 0;
    unique_fd fd;
};

class custody {
  public:
    /// Of the environment's keeper, if there is one; children do not inherit it.
    static std::shared_ptr<custody> from_environment();
    explicit custody(unique_fd socket) : socket_(std::move(socket)) {}

    bool is_kept() const { return static_cast<bool>(socket_); }
    /// How the daemon before this one ended; empty for the first one.
    const std::string& ended() const { return ended_; }
    /// To be called once, first: all that the keeper holds. Blocks for a moment.
    std::vector<handed_over> take();
    /// The keeper holds a duplicate of `fd` until drop(); the number is never used again. Does not block:
    /// what a keeper that is stopped or busy has no room for is said later, in this order.
    std::uint64_t hold(contents what, int fd);
    void drop(std::uint64_t number);
    /// The daemon serves. `detached`: it has let go of standard error, and so is the keeper to.
    void ready(bool detached);

    /// To be called now and then: says what the keeper had no room for.
    void catch_up();

  private:
    struct unsaid {
        record what;
        unique_fd fd;
    };
    void say(const record& r, int fd);
    void say_waiting();

    const unique_fd socket_;
    std::string ended_;
    std::atomic<std::uint64_t> next_{1};
    std::mutex lock_;  // of what follows, and of the order of what is said
    std::deque<unsaid> waiting_;
};

}  // namespace banyan::ckpt::keeper
