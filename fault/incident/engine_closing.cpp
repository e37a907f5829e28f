// SPDX-License-Identifier: BSD-3-Clause
//
// What is over, became evidence of another, or makes room.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <tuple>

#include "fault/incident/engine.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {
namespace {

enum class crowd : std::uint8_t { jobs, applications, others };

crowd crowd_of(const incident& i) {
    return is_told_of_a_job(i) ? crowd::jobs : is_of_an_application(i) ? crowd::applications : crowd::others;
}

std::size_t most_of(crowd c) {
    return c == crowd::jobs           ? engine::max_told
           : c == crowd::applications ? engine::max_of_applications
                                      : engine::max_kept;
}

// Who makes room is worth least. What somebody ruled on is so until he closes it. Rules count jobs: an
// application's error whose job is not known counts for none of them.
auto worth(const incident& i, crowd c) {
    const bool over = i.state == incident_state::done && i.avoid_ms == 0 && i.followed.empty() &&
                      (i.closed_ms != 0 || i.node_out_ms == 0);
    const bool open = i.closed_ms == 0 || i.closed_by == quiet_job_closes, users = c != crowd::others;
    const bool alerts = users && i.decided >= static_cast<std::uint8_t>(step_kind::alert);
    const bool counts = c == crowd::applications && (i.accused != 0 || i.jobs.size() == 1);
    return std::tuple(!over, open && !i.cancelled_by.empty(), open, alerts, counts, users ? i.last_ms : 0);
}

}  // namespace

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
// of jobs and applications fail: the incidents of each kind make room for each other alone. One may have
// become of another kind since it was opened.
void engine::make_room_for(const incident& fresh) {
    std::array<std::size_t, 3> kept{};
    for (const auto& [number, i] : incidents_) ++kept[static_cast<std::size_t>(crowd_of(i))];
    ++kept[static_cast<std::size_t>(crowd_of(fresh))];
    for (const auto which : {crowd::jobs, crowd::applications, crowd::others})
        for (auto n = kept[static_cast<std::size_t>(which)]; n > most_of(which); --n) {
            auto least = incidents_.end();
            for (auto it = incidents_.begin(); it != incidents_.end(); ++it)
                if (crowd_of(it->second) == which &&
                    (least == incidents_.end() || worth(it->second, which) < worth(least->second, which)))
                    least = it;
            if (least == incidents_.end()) break;
            incidents_.erase(least);
        }
}

}  // namespace banyan::fault
