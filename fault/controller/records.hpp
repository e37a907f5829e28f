// SPDX-License-Identifier: BSD-3-Clause
//
// What the controller knows of incidents: the recent ones in memory, all of them in the history. Memory is
// what decides; the history follows on a thread of its own, and an error of it is logged and stops nothing.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "common/log.hpp"
#include "common/wire_async.hpp"
#include "fault/history/history.hpp"
#include "fault/incident/engine.hpp"
#include "fault/metrics/metrics.hpp"
#include "fault/policy/limiter.hpp"

namespace banyan::fault {

/// All calls on the io_context's thread.
class records {
  public:
    records(asio::io_context& io, std::chrono::milliseconds window, std::shared_ptr<metrics> counters);

    /// Opens the history and reads the newest incidents back, and into `limits` what was taken out of late.
    /// Gives the numbers of those whose actions an earlier controller did not end.
    result<std::vector<std::uint64_t>> open(const std::string& path, limiter& limits);
    /// Waits until nothing more is being written.
    void finish();

    engine& incidents() { return engine_; }
    const engine& incidents() const { return engine_; }
    /// Also one that only the history still has.
    task<result<std::optional<incident>>> find(std::uint64_t number);
    /// Something about it for the log; not where a rule says that nobody hears of it.
    void say(const incident& i, std::string_view words) const;

    /// What came of an action: logged, counted, and kept with the incident.
    void record(std::uint64_t number, std::string what, std::string target, std::string text, bool done);
    task<void> save(std::uint64_t number);
    void save_soon(std::uint64_t number);
    void save_breaker_soon(bool tripped);

    /// Which of the events the history has: those of an earlier controller. None when it does not tell.
    task<std::vector<bool>> known(std::vector<event> events);
    /// Events, and what they changed: `changed` as it is now.
    task<void> keep(std::vector<kept_event> events, std::set<std::uint64_t> changed);
    /// How far the node's agent was read.
    task<std::optional<cursor>> cursor_of(std::string node);
    void move_cursor(std::string node, cursor where);

    void complain(const error& e);

  private:
    /// What `f` captures it captures by reference: g++ 12 copies a closure in a co_await expression bit by
    /// bit.
    template <class F>
    auto on_database(F f) {
        return run_blocking(database_, std::move(f));
    }
    task<void> save_breaker(bool tripped);
    void count_open();
    task<void> keep_counted();

    asio::io_context& io_;
    asio::thread_pool database_{1};
    std::shared_ptr<metrics> metrics_;
    std::unique_ptr<history> history_;  // used on database_ only, once it is open
    engine engine_;
    std::uint64_t counted_ = 0;  // the revision whose open incidents were counted
    log_limiter quiet_;
};

}  // namespace banyan::fault
