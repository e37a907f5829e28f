// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/standing.hpp"

#include <algorithm>
#include <map>
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

/// Those who stand elsewhere than most do; where no place has most of the ranks, those who are behind.
std::vector<standing> odd_ones(const std::vector<standing>& all) {
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<standing>> by_place;
    for (const auto& s : all) by_place[{s.step, s.phase}].push_back(s);
    if (by_place.size() < 2) return {};
    const auto most =
        std::ranges::max_element(by_place, {}, [](const auto& place) { return place.second.size(); });
    const bool is_most = most->second.size() * 2 > all.size();
    std::vector<standing> out;
    for (const auto& [place, there] : by_place)
        if (is_most ? there.size() != most->second.size() : out.empty())
            out.insert(out.end(), there.begin(), there.end());
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
    const auto odd = odd_ones(all);
    if (odd.empty()) return std::nullopt;
    const auto& first = odd.front();
    const auto other = std::ranges::find_if(all, [&](const auto& s) {
        return std::ranges::none_of(odd, [&](const auto& o) { return o.is_at_the_step_and_phase_of(s); });
    });
    return of(odd,
              fmt::format("at {}, for {} s; {} at {}", place(first), first.since.count() / 1000,
                          odd.size() + 1 == all.size() ? "the other is" : "the others are", place(*other)));
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
