// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/fabric_watch.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <boost/asio/detached.hpp>

#include "common/clock.hpp"
#include "common/command.hpp"
#include "common/text.hpp"

namespace banyan::fault {

namespace {

std::string accepted_beside(const std::string& history) {
    return (std::filesystem::path(history).parent_path() / "fabric.accepted").string();
}

}  // namespace

fabric_watch::fabric_watch(asio::io_context& io, asio::thread_pool& pool, const config& settings, reports to)
    : io_(io),
      pool_(pool),
      config_(settings),
      report_(std::move(to)),
      told_(io, clock::time_point::max()),
      looked_(io, clock::time_point::max()) {}

void fabric_watch::start() {
    if (!is_on()) {
        spdlog::info("[fault] opensm_log and ufm_log are not set: the fabric is not watched");
        return;
    }
    const auto begin = [this](const std::string& path, const char* whose, auto sink) {
        if (!path.empty()) asio::co_spawn(io_, follow(path, whose, std::move(sink)), asio::detached);
    };
    begin(config_.opensm_log, "the subnet manager's log",
          [this](const log_line& line) { after_opensm_line(line); });
    begin(config_.ufm_log, "UFM's event log", [this](const log_line& line) { after_ufm_line(line); });
    asio::co_spawn(io_, look_when_told(), asio::detached);
}

task<void> fabric_watch::follow(std::string path, const char* whose, line_sink sink) {
    for (;;) {
        file_follower log(path, file_follower::start::end, sink);
        const auto ended = co_await log.run();
        std::uint64_t held = 0;
        if (!ended && quiet_.pass(whose, clock::now(), held))
            spdlog::error("cannot follow {}: {}", whose, ended.error().text());
        timer again(io_, std::chrono::seconds(1));
        co_await again.async_wait(as_result);
    }
}

void fabric_watch::note(std::int64_t line_ms, const char* source, const std::string& text) {
    if (!changed_) line_ms_ = line_ms;
    changed_ = true;
    if (lines_.size() < max_lines) lines_.push_back({line_ms, source, printable(text), 0});
    told_.cancel();
}

void fabric_watch::name(named_port port) {
    if (named_.size() < max_named) named_.push_back(port);
}

void fabric_watch::after_opensm_line(const log_line& line) {
    const auto found = parser_.line(line.raw);
    if (!found) return;
    switch (found->kind) {
        case opensm_kind::manager_ends:
        case opensm_kind::manager_state:
            report_.manager(*found);
            return;
        case opensm_kind::subnet_up:
            if (!changed_) return;
            settled_ = true;
            told_.cancel();
            return;
        case opensm_kind::unlinked:
        case opensm_kind::port_down:
            name({found->guid, found->port});
            break;
        default:
            break;
    }
    note(line.line_ms, "opensm", found->text);
}

void fabric_watch::after_ufm_line(const log_line& line) {
    const auto found = ufm_line(line.raw);
    if (!found) return;
    if (!found->changes_fabric()) {
        if (found->weight >= precedence::alert) report_.told(*found, line.line_ms);
        return;
    }
    if (found->weight >= precedence::alert)
        for (const auto& port : found->ports) name(port);
    note(line.line_ms, "ufm", found->text);
}

task<void> fabric_watch::look_when_told() {
    // The state at start: what was accepted and the fabric lacks broke while nobody watched.
    std::string warning;
    const auto loaded = co_await run_blocking(pool_, [this, &warning] {
        return memory_.load(accepted_beside(config_.history), config_.snapshot, warning);
    });
    if (!warning.empty()) spdlog::error("{}", warning);
    if (!loaded)
        spdlog::info("no fabric snapshot ({}): the first look is taken as whole", loaded.error().what);
    co_await look();
    for (;;) {
        // That a plan is over, no log of the fabric tells.
        const auto next = planned_ ? clock::now() + plans_again : clock::time_point::max();
        told_.expires_at(next);
        while (!changed_ && clock::now() < next) co_await told_.async_wait(as_result);
        if (!changed_) settled_ = true;
        // The subnet manager sweeps after a trap; what it found is settled when it says so, or after a while.
        const auto until = clock::now() + config_.fabric_debounce;
        while (!settled_ && clock::now() < until) {
            told_.expires_at(until);
            co_await told_.async_wait(as_result);
        }
        told_.expires_at(clock::time_point::max());
        co_await look();
    }
}

task<bool> fabric_watch::look_now() {
    const auto before = looks_;
    changed_ = settled_ = true;
    told_.cancel();
    while (looks_ == before) co_await looked_.async_wait(as_result);
    co_return saw_;
}

void fabric_watch::ask_for_plans(std::vector<fabric_fault>& missing) const {
    if (!report_.is_planned) return;
    std::map<std::string, bool> plans;
    for (auto& f : missing) {
        if (f.reason != host_lost_reason && f.reason != host_link_reason) continue;
        auto at = plans.find(f.object.node);
        if (at == plans.end()) {
            const auto answer = report_.is_planned(f.object.node);
            // Slurm does not answer: that takes its time, and would for each of them.
            if (!answer && answer.error().code != errc::not_found) return;
            at = plans.emplace(f.object.node, answer.value_or(false)).first;
        }
        if (at->second) f.how_bad = severity::notice;
    }
}

void fabric_watch::give_up(object gone) {
    if (!is_on()) return;
    if (given_up_.size() < max_given_up) given_up_.push_back(std::move(gone));
    changed_ = settled_ = true;
    told_.cancel();
}

task<void> fabric_watch::look() {
    changed_ = settled_ = false;
    fabric_news news;
    auto given_up = std::exchange(given_up_, {});
    result<void> saved;
    news.evidence = std::exchange(lines_, {});
    news.line_ms = std::exchange(line_ms_, 0);
    auto named = std::exchange(named_, {});
    auto missing = co_await run_blocking(pool_, [this, &news, &named, &given_up, &saved]() -> result<void> {
        BANYAN_TRY(const auto dump, run_command(config_.fabric_dump_command, config_.fabric_dump_timeout));
        news.passing = memory_.links_at(named);  // before what is new is accepted
        BANYAN_TRY(news.missing, memory_.compare(dump, given_up, {config_.names, config_.site}));
        news.seen = memory_.seen();
        ask_for_plans(news.missing);
        saved = memory_.save();
        return {};
    });
    saw_ = missing.has_value();
    if (std::uint64_t held = 0; !saved && quiet_.pass("accepted", clock::now(), held))
        spdlog::error("the accepted fabric is not kept: {}", saved.error().text());
    if (saw_) {
        planned_ = std::ranges::any_of(news.missing, [](const auto& f) {
            return f.how_bad == severity::notice &&
                   (f.reason == host_lost_reason || f.reason == host_link_reason);
        });
        report_.looked(std::move(news));
    } else {
        std::uint64_t held = 0;
        if (quiet_.pass("look", clock::now(), held))
            spdlog::error("cannot look at the fabric: {}", missing.error().text());
        // What was not seen must be looked at again.
        lines_.insert(lines_.begin(), news.evidence.begin(), news.evidence.end());
        named_.insert(named_.begin(), named.begin(), named.end());
        given_up_.insert(given_up_.begin(), given_up.begin(), given_up.end());
        line_ms_ = news.line_ms;
        changed_ = true;
    }
    ++looks_;
    looked_.cancel();
    if (saw_) co_return;
    timer again(io_, std::chrono::seconds(1));
    co_await again.async_wait(as_result);
}

}  // namespace banyan::fault
