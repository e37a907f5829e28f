// SPDX-License-Identifier: BSD-3-Clause
//
// What the controller knows of incidents: the recent ones in memory, all of them in the history. Memory is
// what decides; the history follows on a thread of its own (history_writer.hpp), and an error of it is logged
// and stops nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "common/log.hpp"
#include "common/wire_async.hpp"
#include "fault/controller/history_writer.hpp"
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
    void finish() { writer_.finish(); }

    engine& incidents() { return engine_; }
    const engine& incidents() const { return engine_; }
    /// Also one that only the history still has.
    task<result<std::optional<incident>>> find(std::uint64_t number);
    /// Something about it for the log; not where a rule says that nobody hears of it.
    void say(const incident& i, std::string_view words) const;

    /// What came of an action: logged, counted, and kept with the incident.
    void record(std::uint64_t number, std::string what, std::string target, std::string text, bool done);
    /// The node's agent had its jobs sealed by itself: of its newest incident.
    void note_self_seal(const std::string& node, std::int64_t at_ms, const std::string& text);
    /// Incidents that became evidence of another one of their NVLink domain. Nothing was done to their nodes,
    /// nor will be for them: those count for the limits no more.
    void after_folding(const std::vector<std::uint64_t>& numbers, limiter& limits);
    /// Back when the history has it, or after a second without an answer.
    task<void> save(std::uint64_t number);
    void save_soon(std::uint64_t number);
    /// In dry run it is a figure alone: what was not done must not be held back once it may be.
    void save_breaker_soon(bool tripped, bool dry_run = false);

    /// Which of the events the history has: those of an earlier controller. Of one that is damaged none is
    /// known. Nothing: no answer within a second.
    task<std::optional<std::vector<bool>>> known(std::vector<event> events);
    /// Events, and the incidents that they changed. Back when they are in the history, or it refuses them.
    task<void> keep(std::vector<kept_event> events, std::set<std::uint64_t> changed);
    /// How far the node's agent was read.
    std::optional<cursor> cursor_of(const std::string& node) const;
    void move_cursor(std::string node, cursor where);
    /// Nodes that have an agent, or had one.
    const std::set<std::string>& agents() const { return agents_; }
    void note_agent(const std::string& node);

    void complain(const error& e);

  private:
    void count_open();
    task<void> keep_counted();

    asio::io_context& io_;
    std::shared_ptr<metrics> metrics_;
    engine engine_;
    history_writer writer_;
    std::map<std::string, cursor> cursors_;
    std::set<std::string> agents_;
    std::uint64_t counted_ = 0;  // the revision whose open incidents were counted
    log_limiter quiet_;
};

}  // namespace banyan::fault
