// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/job_rules.hpp"

#include <algorithm>
#include <cstdlib>

#include "fault/catalog/symptom.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {
namespace {

// A job that went back into the queue numbers its steps anew.
constexpr std::int64_t one_run_ms = 3'600'000;
constexpr std::int64_t day_ms = 24 * one_run_ms;

bool is_an_end(const kernel_fault& f) {
    return f.kind == fault_kind::symptom && catalog::is_a_jobs_end(f.code) && !is_given_up(f);
}

bool is_for_lack_of_memory(const kernel_fault& f) {
    const auto* row = f.kind == fault_kind::symptom ? catalog::find_symptom(f.code) : nullptr;
    return row && row->reason == job_memory_reason;
}

}  // namespace

bool is_told_of_a_job(const kernel_fault& f) {
    return f.kind == fault_kind::symptom && catalog::is_told_of_a_job(f.code);
}

bool is_given_up(const kernel_fault& f) {
    return f.kind == fault_kind::symptom &&
           f.code == static_cast<std::uint32_t>(catalog::symptom::job_given_up);
}

bool is_of_a_jobs_end(const incident& i) { return i.reason == job_end_reason; }
bool is_told_of_a_job(const incident& i) { return is_of_a_jobs_end(i) || i.reason == job_damage_reason; }

bool concerns_one_job(const incident& i) { return is_told_of_a_job(i) || i.reason == job_text_reason; }

bool is_of_an_application(const incident& i) {
    return std::ranges::find(application_reasons, i.reason) != application_reasons.end() &&
           !(i.xid && std::ranges::find(hardware_xids, *i.xid) != hardware_xids.end());
}

// Its node is the first that told it. How near an end is to another fault, that
// fault's own lines say: a user whose tasks fail all the time would keep it
// near for ever.
bool belongs_to_a_job(const incident& i, const event& e, precedence w, std::int64_t window_ms) {
    if (i.object.device == e.fault.device && is_told_of_a_job(i)) return e.job != 0 && e.job == i.accused;
    if (!is_an_end(e.fault)) return false;
    if (is_told_of_a_job(i) || std::abs(e.line_ms - i.last_ms) > window_ms) return false;
    const auto root = static_cast<precedence>(i.root_precedence);
    if (i.accused == e.job || std::ranges::find(i.jobs, e.job) != i.jobs.end())
        return root > w || (root == w && i.xid);
    // Whose it is is not known yet, or never: the node has to be the same.
    const bool open_to_all =
        i.jobs.empty() && i.accused == 0 && i.object.node == e.node && i.boot_id == e.boot_id;
    const bool of_memory = i.reason == job_memory_reason && w < precedence::app;
    return open_to_all && (root >= precedence::alert || of_memory);
}

// The fault's own line comes a moment after the end of the task that it has
// ended.
bool explains_a_jobs_end(const incident& i, const event& e, precedence w, std::int64_t window_ms) {
    if (is_told_of_a_job(e.fault) || !is_of_a_jobs_end(i)) return false;
    if (w < precedence::app || w <= static_cast<precedence>(i.root_precedence)) return false;
    if (i.object.node != e.node || i.boot_id != e.boot_id || std::abs(e.line_ms - i.line_ms) > window_ms)
        return false;
    if (e.job != 0) return e.job == i.accused;
    return w >= precedence::alert || e.fault.kind == fault_kind::xid || is_for_lack_of_memory(e.fault);
}

bool note_first(incident& i, const event& e) {
    if (is_given_up(e.fault)) return false;
    const bool end = is_an_end(e.fault);
    const auto step = e.fault.step.value_or(0);
    const bool accuses = precedence_of(e.fault) >= precedence::app;
    const auto same = std::ranges::find_if(i.firsts, [&](const job_hit& hit) {
        return end ? hit.step == step && std::abs(hit.at_ms - e.line_ms) <= one_run_ms : hit.node == e.node;
    });
    if (same != i.firsts.end()) {
        // Nodes tell at different times, and damage is looked for again and again.
        const bool was = end ? e.line_ms < same->at_ms : e.line_ms > same->at_ms;
        if (was) *same = {e.node, e.line_ms, step, accuses};
        return was;
    }
    if (i.firsts.size() >= incident::max_firsts) {
        const auto oldest = std::ranges::min_element(i.firsts, {}, &job_hit::at_ms);
        // Damage on that many nodes in a day says nothing of one of them; steps go on.
        if (!end && e.line_ms - oldest->at_ms < day_ms) return false;
        i.firsts.erase(oldest);
    }
    i.firsts.push_back({e.node, e.line_ms, step, accuses});
    return true;
}

bool accuses_a_node(const incident& i) { return std::ranges::any_of(i.firsts, &job_hit::accuses); }

bool was_hit_on(const incident& i, std::string_view node, std::int64_t since_ms) {
    return std::ranges::any_of(i.firsts, [&](const job_hit& hit) {
        return hit.accuses && hit.node == node && hit.at_ms > since_ms;
    });
}

bool is_quiet(const incident& i, std::int64_t now_ms) {
    const bool alerts = i.decided >= static_cast<std::uint8_t>(step_kind::alert);
    if (!is_told_of_a_job(i) && (!is_of_an_application(i) || alerts)) return false;
    if (i.closed_ms != 0 || i.state != incident_state::done || !i.cancelled_by.empty()) return false;
    if (!i.followed.empty() || i.node_out_ms != 0 || i.held_ms != 0) return false;
    // A node whose clock is ahead does not keep it for ever.
    const auto last_ms = i.last_ms <= now_ms ? i.last_ms : i.incident_ms;
    return now_ms - last_ms > day_ms;
}

}  // namespace banyan::fault
