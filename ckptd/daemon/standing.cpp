// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/standing.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t enough_stays = 4;
constexpr unsigned times_the_longest = 5;
constexpr std::chrono::seconds late_at_least{10};
constexpr nanoseconds longest_bound = std::chrono::hours(24);  // whatever the page says

std::string place(const standing& s) {
    if (s.phase == phase_of_saves) return fmt::format("its save of step {}", s.step);
    return fmt::format("step {}, phase {}", s.step, s.phase);
}

std::string stopped_in_words(const standing& s) {
    return fmt::format("stopped by a signal, at {}, for {} s", place(s), s.since.count() / 1000);
}

hang of(std::vector<standing> some, std::string why) {
    std::ranges::sort(some, {}, &standing::rank);
    hang out{{}, some.front().step, std::move(why)};
    for (const auto& s : some) out.ranks.push_back(s.rank);
    return out;
}

/// Those who are behind all others, and no more than half. One that is ahead waits for the others, and who
/// says where it is by its saves is behind no heartbeat.
std::vector<standing> those_behind(const std::vector<standing>& all) {
    const auto by_saves = [](const auto& s) { return s.phase == phase_of_saves; };
    const auto saves = static_cast<std::size_t>(std::ranges::count_if(all, by_saves));
    if (saves != 0 && saves != all.size()) return {};
    const auto& first = std::ranges::min(all, [](const auto& a, const auto& b) {
        return std::pair(a.step, a.phase) < std::pair(b.step, b.phase);
    });
    std::vector<standing> out;
    std::ranges::copy_if(all, std::back_inserter(out),
                         [&](const auto& s) { return s.is_at_the_step_and_phase_of(first); });
    return out.size() * 2 <= all.size() ? out : std::vector<standing>{};
}

}  // namespace

std::optional<standing> standing_of(const rank_memory_header::heartbeat& beat, std::uint32_t rank,
                                    clock::time_point now) {
    const auto at = beat.at_ns.load(std::memory_order_acquire);
    if (at == 0 || at > static_cast<std::uint64_t>(now.time_since_epoch().count())) return std::nullopt;
    const auto since = now.time_since_epoch() - nanoseconds(at);
    standing out{rank, beat.step.load(), beat.phase.load(), std::chrono::duration_cast<milliseconds>(since)};
    const auto& stay = beat.stay_in(out.phase);
    const auto longest = std::min<std::uint64_t>(
        stay.longest_ns.load(), static_cast<std::uint64_t>(longest_bound.count()) / times_the_longest);
    out.late = stay.count.load() >= enough_stays && since > late_at_least &&
               since > nanoseconds(longest * times_the_longest);
    return out;
}

std::optional<hang> find_hang(const std::vector<standing>& all) {
    if (!std::ranges::all_of(all, &standing::late)) return std::nullopt;
    std::vector<standing> stopped;
    std::ranges::copy_if(all, std::back_inserter(stopped), [](const auto& s) { return s.process == 'T'; });
    const bool debugged = std::ranges::any_of(all, [](const auto& s) { return s.process == 't'; });
    if (debugged || all.size() < 2 || stopped.size() == all.size()) return std::nullopt;
    if (!stopped.empty()) return of(stopped, stopped_in_words(stopped.front()));
    const auto behind = those_behind(all);
    if (behind.empty()) return std::nullopt;
    const auto& first = behind.front();
    const auto other =
        std::ranges::find_if_not(all, [&](const auto& s) { return s.is_at_the_step_and_phase_of(first); });
    return of(behind, fmt::format("at {}, for {} s; {} at {}", place(first), first.since.count() / 1000,
                                  all.size() == 2 ? "the other is" : "the others are", place(*other)));
}

nlohmann::json to_json(const std::vector<standing>& some) {
    auto out = nlohmann::json::array();
    for (const auto& s : some)
        out.push_back({{"rank", s.rank},
                       {"step", s.step},
                       {"phase", s.phase},
                       {"ms", static_cast<std::uint64_t>(s.since.count())},
                       {"late", s.late},
                       {"process", std::string(1, s.process)}});
    return {{"ranks", std::move(out)}};
}

result<std::vector<standing>> standings_from(const nlohmann::json& fields, std::uint32_t world) {
    if (world == 0) return fail(errc::invalid_input, "a job without ranks");
    BANYAN_TRY(const auto ranks, json_fields(fields).list("ranks", world));
    std::vector<standing> out;
    for (const auto& one : ranks) {
        BANYAN_TRY(const auto rank, one.number("rank", world - 1));
        BANYAN_TRY(const auto step, one.number("step"));
        BANYAN_TRY(const auto phase, one.number("phase", UINT32_MAX));
        BANYAN_TRY(const auto ms, one.number("ms", INT64_MAX / 1'000'000));
        BANYAN_TRY(const auto late, one.flag("late"));
        BANYAN_TRY(const auto process, one.text("process", 1));
        out.push_back({static_cast<std::uint32_t>(rank), step, static_cast<std::uint32_t>(phase),
                       milliseconds(static_cast<std::int64_t>(ms)), late,
                       process.empty() ? '?' : process.front()});
    }
    return out;
}

}  // namespace banyan::ckpt
