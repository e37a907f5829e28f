// SPDX-License-Identifier: BSD-3-Clause
//
// The history's thread, and what waits for it. That has bounds: each incident once, as it is when its turn
// comes, the cursor of each node once; and events, whose bringers wait until they are kept. A history that
// does not answer keeps nobody for longer than a second who does not ask for just that.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "common/timer.hpp"
#include "common/wire_async.hpp"
#include "fault/history/history.hpp"

namespace banyan::fault {

/// All calls on the io_context's thread.
class history_writer {
  public:
    using find = std::function<const incident*(std::uint64_t)>;
    static constexpr std::chrono::seconds patience{1};

    history_writer(asio::io_context& io, find as_it_is, std::function<void(const error&)> complain)
        : io_(io), pause_(io), as_it_is_(std::move(as_it_is)), complain_(std::move(complain)) {}

    void begin(history opened) { history_ = std::make_unique<history>(std::move(opened)); }
    /// Waits until nothing more is being written, and writes what is left.
    void finish();

    void save_soon(std::uint64_t number);
    /// Back when it is written, or after a second without an answer: it follows.
    task<void> save(std::uint64_t number);
    void set_cursor(std::string node, cursor where);
    void set_flag(std::string name, bool on);
    void note_agent(std::string node);
    /// Back when the history has them, however long that takes. False: it refuses them, as a full disk does.
    task<bool> keep(std::vector<kept_event> events, std::set<std::uint64_t> changed);

    /// What `f` finds there. None: no answer within a second, or already for longer than that. What `f` needs
    /// it must own.
    template <class T>
    task<std::optional<T>> ask(std::function<T(history&)> f) {
        struct question {
            std::optional<T> said;
            timer until;
            std::atomic<bool> left = false;  // nobody waits for it any more

            explicit question(asio::io_context& io) : until(io, patience) {}
        };
        if (!answers()) co_return std::nullopt;
        auto q = std::make_shared<question>(io_);
        run([q, f = std::move(f)](history& h) -> std::function<void()> {
            // Many of them would keep those from an answer that come after them.
            if (q->left) return [] {};
            return [q, said = f(h)] {
                q->said = said;
                q->until.cancel();
            };
        });
        co_await q->until.async_wait(as_result);
        q->left = true;
        co_return std::move(q->said);
    }

  private:
    struct waiter {
        explicit waiter(asio::io_context& io) : timer(io, timer::time_point::max()) {}
        banyan::timer timer;
        std::optional<bool> kept;
        bool left = false;  // it waits no more
    };
    /// What is written together.
    struct round {
        std::vector<kept_event> events;
        std::set<std::uint64_t> numbers;  // when it was written: those that are to be tried again
        std::vector<incident> incidents;  // those of `numbers`
        std::map<std::string, cursor> cursors;
        std::map<std::string, bool> flags;
        std::set<std::string> agents;
        std::vector<std::shared_ptr<waiter>> waiting;
        result<void> kept, moved;    // events and incidents; the rest
        std::vector<error> refused;  // of single incidents

        bool empty() const {
            return events.empty() && numbers.empty() && cursors.empty() && flags.empty() && agents.empty() &&
                   waiting.empty();
        }
        void write(history& h);
        /// After a failure that may be a single row's.
        void write_each(history& h);
    };

    using job = std::function<std::function<void()>(history&)>;
    /// On the history's thread; what it gives is then called on ours.
    void run(job what);
    bool answers() const;
    void pump();
    void take_copies(round& r) const;
    void after(round& done);
    /// What was not written, and may be yet.
    void put_back(round& done);

    asio::io_context& io_;
    timer pause_;
    find as_it_is_;
    std::function<void(const error&)> complain_;
    std::unique_ptr<history> history_;  // used on database_ only, once it is open
    round next_;
    std::shared_ptr<round> current_;  // being written
    bool paused_ = false;             // it failed a moment ago
    std::size_t unanswered_ = 0;
    std::optional<blocking_call> busy_;  // while any is
    clock::time_point heard_;
    asio::thread_pool database_{1};
};

}  // namespace banyan::fault
