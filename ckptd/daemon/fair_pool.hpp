// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking work in the name of users who must not hold each other up. Every user has a queue and threads of
// his own: storage of one that never answers keeps his threads for good, and nobody else's. A thread begins
// with a user's first piece of work and ends with his last, so that idle users cost nothing. What is over a
// limit is refused at once with errc::exhausted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

#include "common/result.hpp"
#include "common/timer.hpp"
#include "common/wire_async.hpp"

namespace banyan::ckpt {

class fair_pool {
  public:
    struct limits {
        std::uint32_t threads_of_user = 2;
        std::uint32_t threads = 128;
        std::size_t waiting_of_user = 64;  ///< beyond those that run
    };
    /// `name` is what the pool does, for messages: "storage".
    fair_pool(std::string name, limits l);

    /// Runs `f`, which returns a result<T>, for `uid`; resumes on the caller's executor.
    template <class F>
    auto run(uid_t uid, F f) -> task<decltype(f())> {
        using value = decltype(f());
        const auto executor = co_await asio::this_coro::executor;
        const auto out = std::make_shared<std::optional<value>>();
        const auto done = std::make_shared<timer>(executor, timer::time_point::max());
        auto work = [f = std::move(f), out, done, executor]() mutable {
            try {
                out->emplace(f());
            } catch (const std::exception& e) {
                out->emplace(fail(errc::internal, e.what()));
            }
            // On the caller's thread: only there is it certain that it waits already.
            asio::post(executor, [done] { done->cancel(); });
        };
        auto taken = submit(uid, std::move(work));
        if (!taken) co_return std::unexpected(taken.error());
        co_await done->async_wait(as_result);
        co_return std::move(**out);
    }

    /// Work that runs or waits, of this user.
    std::size_t load(uid_t uid) const;

  private:
    using piece = std::function<void()>;
    struct lane {
        std::deque<piece> waiting;
        std::uint32_t running = 0;
    };
    struct state {
        std::mutex lock;  ///< guards all below
        std::map<uid_t, lane> lanes;
        std::uint32_t threads = 0;
    };
    result<void> submit(uid_t uid, piece work);
    static void serve(const std::shared_ptr<state>& s, uid_t uid, piece work);

    std::string name_;
    limits limits_;
    std::shared_ptr<state> state_;  ///< outlives the pool while a thread is stuck
};

}  // namespace banyan::ckpt
