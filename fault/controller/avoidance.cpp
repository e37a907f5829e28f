// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/avoidance.hpp"

#include <algorithm>
#include <filesystem>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/timer.hpp"
#include "fault/fabric/fabric_plan.hpp"
#include "fault/policy/policy.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {
namespace {

constexpr std::string_view held_back = "held back: ";
constexpr const char *verb = "avoid", *end_verb = "avoid_end";

const action_record* last_said(const incident& i) {
    const auto at = std::ranges::find_if(i.actions.rbegin(), i.actions.rend(), [](const action_record& a) {
        return a.what == verb || a.what == end_verb;
    });
    return at == i.actions.rend() ? nullptr : &*at;
}

std::int64_t changed_ms(const std::string& path) {
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0) return clock::wall_ms();
    return std::min<std::int64_t>(clock::wall_ms(), s.st_mtim.tv_sec * 1000 + s.st_mtim.tv_nsec / 1'000'000);
}

bool asks_for_it(const incident& i) {
    return i.decided == static_cast<std::uint8_t>(step_kind::avoid) && i.avoid_ms == 0 &&
           i.cancelled_by.empty();
}

}  // namespace

bool is_avoid_held(const incident& i) {
    const auto* said = last_said(i);
    return said && said->what == verb && said->result.starts_with(held_back);
}

std::int64_t well_since(const incident& i) {
    if (i.boot_id == fabric_boot && i.closed_ms == 0) return 0;
    return std::max({i.last_ms, i.closed_ms, i.seen.empty() ? 0 : i.seen.back()});
}

void avoidance::start() {
    if (!config_.avoid.empty()) asio::co_spawn(io_, run(), asio::detached);
}

std::vector<cable> avoidance::avoided(std::uint64_t but) const {
    std::vector<cable> out;
    for (const auto& [number, i] : records_.incidents().all())
        if (i.avoid_ms != 0 && number != but) out.push_back(cable_of(i));
    out.insert(out.end(), forgotten_.begin(), forgotten_.end());
    return out;
}

/// Those that memory has forgotten, or never read: the file still names them.
task<void> avoidance::load_older() {
    const auto named = co_await run_blocking(pool_, [this] { return avoided_in(config_.avoid); });
    const auto written_ms = co_await run_blocking(pool_, [this] { return changed_ms(config_.avoid); });
    std::error_code failed;
    // Where there is no file, and nothing to say, none is needed.
    written_ = !std::filesystem::exists(config_.avoid, failed) && !failed && avoided(0).empty();
    std::vector<cable> unknown;
    for (const auto& one : named) {
        const auto number = one.incident;
        if (records_.incidents().find(number)) continue;
        auto found = co_await records_.find(number);
        for (banyan::timer timer(io_); !found && found.error().code == errc::unavailable;) {
            timer.expires_after(std::chrono::seconds(1));
            co_await timer.async_wait(as_result);
            found = co_await records_.find(number);
        }
        if (!found || !*found)
            unknown.push_back(one);
        else if ((*found)->avoid_ms != 0)
            records_.incidents().restore(std::move(**found));
    }
    if (unknown.empty()) co_return;
    forgotten_until_ms_ = written_ms + config_.avoid_for.count();
    forgotten_ = std::move(unknown);
    spdlog::warn(
        "{} links of {} are of incidents that the history does not have: new jobs are kept off them until {} "
        "s "
        "after the file was written",
        forgotten_.size(), config_.avoid, config_.avoid_for.count() / 1000);
}

task<void> avoidance::run() {
    co_await load_older();
    ready_ = true;
    banyan::timer timer(io_);
    for (;;) {
        if (!written_) (void)co_await write();
        co_await let_go_the_well();
        co_await try_again();
        timer.expires_after(config_.avoid_pause);
        co_await timer.async_wait(as_result);
    }
}

task<bool> avoidance::write() {
    // In dry run the file is not ours to change; what an earlier controller wrote stays until one acts again.
    if (!ready_ || config_.dry_run) co_return true;
    const auto all = avoided(0);
    const auto done =
        co_await run_blocking(pool_, [this, &all] { return write_avoided(config_.avoid, all); });
    written_ = done.has_value();
    if (!done) records_.complain(done.error());
    co_return written_;
}

void avoidance::hold(incident& i, const std::string& why) {
    const auto text = fmt::format("{}{}", held_back, why);
    i.advice = why;
    records_.incidents().touch();
    if (const auto* said = last_said(i); said && said->what == verb && said->result == text) return;
    records_.record(i.number, verb, i.object.text(), text, false);
}

task<void> avoidance::keep_off(std::uint64_t number, bool tripped) {
    auto* i = records_.incidents().find(number);
    if (!i || i->avoid_ms != 0 || !i->cancelled_by.empty()) co_return;
    tripped_ = tripped;
    const auto rule = i->rule.empty() ? "" : fmt::format(", rule {}", i->rule);
    if (config_.avoid.empty()) co_return hold(*i, "[topo] avoid names no file");
    if (config_.dry_run) {
        const auto text = fmt::format("dry run: new jobs would be kept off it{}", rule);
        if (const auto* said = last_said(*i); !said || said->result != text)
            records_.record(number, verb, i->object.text(), text, false);
        co_return;
    }
    if (i->approved_by.empty()) {
        if (tripped) co_return hold(*i, "the circuit breaker is open; banyan-fault reset-breaker closes it");
        const auto age =
            clock::wall_ms() - std::max({i->line_ms, i->last_ms, i->seen.empty() ? 0 : i->seen.back()});
        if (age > config_.max_event_age.count())
            co_return hold(*i, "its fault was last seen longer ago than max_event_age");
        const auto others = avoided(number);
        const auto one = cable_of(*i);
        const auto room =
            co_await run_blocking(pool_, [this, &others, &one] { return spare_.room(others, one); });
        if (!(i = records_.incidents().find(number)) || i->avoid_ms != 0) co_return;
        if (!room) co_return hold(*i, room.error().text());
        // Another may have been taken meanwhile, of the same switch.
        if (!std::ranges::equal(avoided(number), others, {}, &cable::incident, &cable::incident))
            co_return hold(*i, "another is kept off at this moment");
    }
    i->avoid_ms = clock::wall_ms();
    co_await records_.save(number);
    const bool done = co_await write();
    if (!(i = records_.incidents().find(number))) co_return;
    if (!done) {
        i->avoid_ms = 0;
        co_return hold(*i, fmt::format("{} cannot be written", config_.avoid));
    }
    records_.record(number, verb, i->object.text(),
                    fmt::format("done: jobs that start from now on are kept off it{}", rule), true);
}

task<void> avoidance::let_go(std::uint64_t number, std::string why) {
    auto* i = records_.incidents().find(number);
    if (!i || i->avoid_ms == 0) co_return;
    i->avoid_ms = 0;
    records_.record(number, end_verb, i->object.text(), std::move(why), true);
    co_await records_.save(number);
    written_ = false;
    (void)co_await write();
}

task<result<std::string>> avoidance::rule_on(std::uint64_t number, ruling what, std::string who,
                                             bool tripped) {
    auto* i = records_.incidents().find(number);
    const auto id = i->id(), link = i->object.text(), by = "by " + who;
    const bool is_kept_off = i->avoid_ms != 0;
    if (what == ruling::cancel) {
        i->cancelled_by = who;
        i->approved_by.clear();
        i->advice = "cancelled " + by;
        records_.record(number, "cancel", link, by, true);
        co_await let_go(number, "cancelled " + by);
        co_await records_.save(number);
        co_return fmt::format("jobs are placed as if {} were well, unless banyan-fault approve {} says so",
                              link, id);
    }
    if (is_kept_off)
        co_return fail(errc::conflict, fmt::format("new jobs are kept off {} already", link),
                       fmt::format("banyan-fault cancel {} ends that", id));
    if (what == ruling::retry && !is_avoid_held(*i))
        co_return fail(errc::conflict, fmt::format("nothing of incident {} is held back", id),
                       fmt::format("banyan-fault explain {}", id));
    if (what == ruling::approve) {
        i->cancelled_by.clear();
        i->approved_by = who;
        records_.record(number, "approve", link, config_.dry_run ? by + ", in dry run" : by, true);
    }
    co_await keep_off(number, tripped);
    if (!(i = records_.incidents().find(number))) co_return fail(errc::not_found, "the incident is gone");
    i->approved_by.clear();
    if (config_.dry_run)
        co_return fmt::format(
            "dry run: jobs are placed as if {} were well; incident {} says what would be done", link, id);
    if (i->avoid_ms == 0)
        co_return fail(errc::conflict, fmt::format("incident {} stays held back: {}", id, i->advice),
                       fmt::format("banyan-fault approve {} does it nonetheless", id));
    co_return fmt::format("jobs that start from now on are kept off {}: banyan-fault explain {}", link, id);
}

task<void> avoidance::let_go_the_well() {
    const auto now = clock::wall_ms();
    if (!forgotten_.empty() && now >= forgotten_until_ms_) {
        forgotten_.clear();
        (void)co_await write();
    }
    std::vector<std::uint64_t> well;
    for (const auto& [number, i] : records_.incidents().all())
        if (const auto since = i.avoid_ms != 0 ? well_since(i) : 0;
            since != 0 && now - since >= config_.avoid_for.count())
            well.push_back(number);
    for (const auto number : well)
        co_await let_go(number, fmt::format("it was well for {} s", config_.avoid_for.count() / 1000));
}

task<void> avoidance::try_again() {
    std::vector<std::uint64_t> waiting;
    for (const auto& [number, i] : records_.incidents().all())
        if (asks_for_it(i) && is_avoid_held(i) && (i.closed_ms == 0 || ended_by_itself(i)))
            waiting.push_back(number);
    for (const auto number : waiting) co_await keep_off(number, tripped_);
}

}  // namespace banyan::fault
