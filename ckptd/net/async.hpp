// SPDX-License-Identifier: BSD-3-Clause
//
// Two small tools for coroutines on one thread: an event that many wait for, and a lock with it. Not
// thread-safe: all on the daemon's io_context.
#pragma once

#include <algorithm>
#include <vector>

#include "common/timer.hpp"
#include "common/wire_async.hpp"

namespace banyan::ckpt {

class async_event {
  public:
    explicit async_event(asio::any_io_executor executor) : executor_(std::move(executor)) {}
    /// Wakes all who wait now.
    void notify() {
        for (auto* waits : waiting_) waits->cancel();
    }
    /// Returns at the next notify() or at `until`: the caller looks at its condition again either way.
    task<void> wait(clock::time_point until) {
        timer own(executor_, until);
        // Also a coroutine that is destroyed while it waits must leave the list.
        const struct entry {
            std::vector<timer*>& list;
            timer* waits;
            ~entry() { std::erase(list, waits); }
        } listed{waiting_, &own};
        waiting_.push_back(&own);
        co_await own.async_wait(as_result);
    }

  private:
    asio::any_io_executor executor_;
    std::vector<timer*> waiting_;
};

class async_lock {
  public:
    explicit async_lock(asio::any_io_executor executor) : free_(std::move(executor)) {}

    class held {
      public:
        explicit held(async_lock& lock) : lock_(&lock) {}
        held(held&& o) noexcept : lock_(std::exchange(o.lock_, nullptr)) {}
        held& operator=(held&&) = delete;
        ~held() {
            if (!lock_) return;
            lock_->taken_ = false;
            lock_->free_.notify();
        }

      private:
        async_lock* lock_;
    };

    task<held> acquire() {
        while (taken_) co_await free_.wait(clock::now() + std::chrono::hours(1));
        taken_ = true;
        co_return held(*this);
    }

  private:
    bool taken_ = false;
    async_event free_;
};

}  // namespace banyan::ckpt
