// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/fabric_watch.hpp"

#include <boost/asio/detached.hpp>

#include "common/command.hpp"

namespace banyan::fault {

using std::chrono::steady_clock;

fabric_watch::fabric_watch(asio::io_context& io, asio::thread_pool& pool, const config& settings, report to)
    : io_(io),
      pool_(pool),
      config_(settings),
      report_(std::move(to)),
      told_(io, steady_clock::time_point::max()) {}

void fabric_watch::start() {
    if (config_.opensm_log.empty()) {
        spdlog::info("[fault] opensm_log is not set: the fabric is not watched");
        return;
    }
    asio::co_spawn(io_, follow(), asio::detached);
    asio::co_spawn(io_, look_when_told(), asio::detached);
}

task<void> fabric_watch::follow() {
    for (;;) {
        log_ = std::make_unique<file_follower>(config_.opensm_log, file_follower::start::end,
                                               [this](const log_line& line) { after_line(line); });
        const auto ended = co_await log_->run();
        std::uint64_t held = 0;
        if (!ended && quiet_.pass("log", steady_clock::now(), held))
            spdlog::error("cannot follow the subnet manager's log: {}", ended.error().text());
        asio::steady_timer again(io_, std::chrono::seconds(1));
        co_await again.async_wait(as_result);
    }
}

void fabric_watch::after_line(const log_line& line) {
    const auto found = parser_.line(line.raw);
    if (!found) return;
    if (found->kind == opensm_kind::subnet_up) {
        if (!changed_) return;
        settled_ = true;
    } else {
        if (!changed_) line_ms_ = line.line_ms;
        changed_ = true;
        if (lines_.size() < max_lines) lines_.push_back({line.line_ms, "opensm", found->text, 0});
    }
    told_.cancel();
}

task<void> fabric_watch::look_when_told() {
    // The state at start: what the snapshot has and the fabric lacks broke while nobody watched.
    const auto loaded =
        co_await run_blocking(pool_, [this] { return memory_.load_snapshot(config_.snapshot); });
    if (!loaded)
        spdlog::info("no fabric snapshot ({}): the first look is taken as whole", loaded.error().what);
    co_await look();
    for (;;) {
        while (!changed_) co_await told_.async_wait(as_result);
        // The subnet manager sweeps after a trap; what it found is settled when it says so, or after a while.
        const auto until = steady_clock::now() + config_.settle;
        while (!settled_ && steady_clock::now() < until) {
            told_.expires_at(until);
            co_await told_.async_wait(as_result);
        }
        told_.expires_at(steady_clock::time_point::max());
        co_await look();
    }
}

task<void> fabric_watch::look() {
    changed_ = settled_ = false;
    auto lines = std::exchange(lines_, {});
    const auto line_ms = std::exchange(line_ms_, 0);
    auto missing = co_await run_blocking(pool_, [this]() -> result<std::vector<fabric_fault>> {
        BANYAN_TRY(const auto dump, run_command(config_.discover, config_.discover_timeout));
        return memory_.compare(dump);
    });
    if (missing) {
        report_(std::move(*missing), std::move(lines), line_ms);
        co_return;
    }
    std::uint64_t held = 0;
    if (quiet_.pass("look", steady_clock::now(), held))
        spdlog::error("cannot look at the fabric: {}", missing.error().text());
    // What was not seen must be looked at again.
    lines_.insert(lines_.begin(), lines.begin(), lines.end());
    line_ms_ = line_ms;
    changed_ = true;
    asio::steady_timer again(io_, std::chrono::seconds(1));
    co_await again.async_wait(as_result);
}

}  // namespace banyan::fault
