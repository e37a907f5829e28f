// SPDX-License-Identifier: BSD-3-Clause
//
// What is over, became evidence of another, or makes room.
#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "fault/incident/engine.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {

std::vector<std::uint64_t> engine::fold_ends(std::uint64_t number) {
    std::vector<std::uint64_t> out;
    auto* home = find(number);
    if (!home || is_told_of_a_job(*home)) return out;
    if (home->root_precedence < static_cast<std::uint8_t>(precedence::alert)) return out;
    for (auto& [n, i] : incidents_) {
        if (!is_of_a_jobs_end(i) || i.closed_ms != 0 || i.state != incident_state::done) continue;
        if (i.decided >= static_cast<std::uint8_t>(step_kind::alert)) continue;
        if (std::ranges::find(home->jobs, i.accused) == home->jobs.end()) continue;
        if (std::abs(i.line_ms - home->line_ms) > window_ms_ || i.last_ms - home->last_ms > window_ms_)
            continue;
        for (const auto& line : i.evidence)
            home->add_evidence({line.at_ms, line.source, line.text, line.repeats});
        i.closed_ms = std::max(i.incident_ms, home->incident_ms);
        i.closed_by = "incident " + home->id();
        out.push_back(n);
    }
    if (!out.empty()) touch();
    return out;
}

std::vector<std::uint64_t> engine::close_quiet(std::int64_t now_ms) {
    std::vector<std::uint64_t> out;
    for (auto& [number, i] : incidents_) {
        if (!is_quiet(i, now_ms)) continue;
        i.closed_ms = now_ms;
        i.closed_by = quiet_job_closes;
        out.push_back(number);
    }
    if (!out.empty()) touch();
    return out;
}

// The history keeps them all; memory keeps what can still change, then the newest. A user can have any number
// of jobs fail: their incidents make room for each other alone.
void engine::make_room_for(const incident& fresh) {
    const bool told = is_told_of_a_job(fresh);
    const auto of_its_kind = [&](const auto& pair) { return is_told_of_a_job(pair.second) == told; };
    const auto kept = static_cast<std::size_t>(std::ranges::count_if(incidents_, of_its_kind));
    if (kept < (told ? max_told : max_kept)) return;
    const auto rank = [told](const incident& i) {
        const bool over = i.state == incident_state::done && i.avoid_ms == 0 && i.followed.empty() &&
                          (i.closed_ms != 0 || i.node_out_ms == 0);
        const bool alerts = told && i.decided >= static_cast<std::uint8_t>(step_kind::alert);
        return std::tuple(!over, i.closed_ms == 0, alerts, told ? i.last_ms : 0);
    };
    auto least = incidents_.end();
    for (auto it = incidents_.begin(); it != incidents_.end(); ++it)
        if (of_its_kind(*it) && (least == incidents_.end() || rank(it->second) < rank(least->second)))
            least = it;
    incidents_.erase(least);
}

}  // namespace banyan::fault
