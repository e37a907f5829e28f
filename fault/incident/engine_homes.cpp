// SPDX-License-Identifier: BSD-3-Clause
//
// To which incident an event belongs.
#include <algorithm>
#include <cstdlib>

#include "fault/incident/engine.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/incident/nvlink_rules.hpp"
#include "fault/incident/relations.hpp"

namespace banyan::fault {
namespace {

// What goes on about one part of a node is one incident, however long it does. What a card's own lines
// tell and what is told of its place on the bus are one fault.
bool belongs_to_symptom(const incident& i, const event& e, bool near) {
    const bool symptom = !i.object.device.empty();
    if (symptom && e.fault.kind == fault_kind::symptom && i.object.device == e.fault.device)
        return !of_another_job(i, e, precedence_of(e.fault));
    if (!near || !speaks_of_a_card(e.fault)) return false;
    if (!e.fault.bdf.empty()) return i.object.bdf == e.fault.bdf;
    return !symptom && i.object.kind == object_kind::gpu && of_a_gpu(e.fault);
}

}  // namespace

// The same fault of the same part is told again hours later: that is no new one while nobody has seen to it.
// What accuses an application is another fault each time, unless it is known to be of the same job.
bool engine::repeats(const incident& i, const event& e) {
    if (i.object.bdf.empty() || i.object.bdf != e.fault.bdf || !is_the_culprits(i, e.fault)) return false;
    const auto root = static_cast<precedence>(i.root_precedence);
    return root == precedence::app ? e.job != 0 && e.job == i.accused : root >= precedence::alert;
}

bool engine::belongs(const incident& i, const event& e, precedence w) const {
    if (is_told_of_a_job(e.fault)) return belongs_to_a_job(i, e, w, window_ms_);
    if (crosses_nodes(i, e)) return belongs_to_its_domain(i, e, w, window_ms_);
    if (i.object.node != e.node || is_an_nvlink_domain(i)) return false;
    // A port that was lost is up again, whether the node was started again meanwhile or not.
    if (i.boot_id != e.boot_id && !(is_port(e.fault, catalog::symptom::hca_port_up) && lost_a_port(i)))
        return false;
    const bool near = std::abs(e.line_ms - i.last_ms) <= window_ms_;
    const bool settled = i.node_out_ms != 0 || !i.cancelled_by.empty();
    if ((near && accuses_a_switch(i, e)) || ((near || settled) && is_of_the_switch(i, e))) return true;
    if (!i.object.device.empty() || e.fault.kind == fault_kind::symptom)
        return belongs_to_symptom(i, e, near);
    if (i.object.kind == object_kind::link || i.object.kind == object_kind::hca) return false;
    if (is_another_fault(i, e, w) || of_another_job(i, e, w)) return false;
    // The driver goes on about a card that is already out, or is to stay: that is no new incident.
    return near || (settled && i.object.bdf == e.fault.bdf) || repeats(i, e);
}

incident* engine::home_of(const event& e, precedence w) {
    const bool own = has_its_own(e, w);
    // What is told of an NVLink belongs to the domain's fault before it does to whatever else its node has.
    for (auto it = incidents_.rbegin(); !e.nvlink_domain.empty() && !own && it != incidents_.rend(); ++it)
        if (it->second.closed_ms == 0 && belongs_to_its_domain(it->second, e, w, window_ms_) &&
            belongs(it->second, e, w))
            return &it->second;
    for (auto it = incidents_.rbegin(); it != incidents_.rend(); ++it)
        if (it->second.closed_ms == 0 && !(own && crosses_nodes(it->second, e)) && belongs(it->second, e, w))
            return &it->second;
    return nullptr;
}

// Only where it is of no other fault: whoever judged that one judged what its lines say, too.
incident* engine::end_explained_by(const event& e, precedence w) {
    for (auto it = incidents_.rbegin(); it != incidents_.rend(); ++it)
        if (it->second.closed_ms == 0 && explains_a_jobs_end(it->second, e, w, window_ms_))
            return &it->second;
    return nullptr;
}

// Told late, as repeats that were held back are: whoever closed the incident or returned the node saw to the
// fault that the line is of. Not to one that weighs more than what was known then.
incident* engine::past_home_of(const event& e, precedence w) {
    if (!e.written_ms) return nullptr;
    for (auto it = incidents_.rbegin(); it != incidents_.rend(); ++it) {
        auto& i = it->second;
        // Of a whole node these were closed by themselves, and nobody looked at its parts; nor at an
        // application that was quiet for a day.
        const bool by_itself = i.reason == silent_reason || i.reason == stuck_reason ||
                               (i.closed_by == quiet_job_closes && !is_told_of_a_job(i));
        if (by_itself || was_folded(i) || *e.written_ms >= i.closed_ms || !belongs(i, e, w)) continue;
        if (crosses_nodes(i, e) && !was_seen_to(i, e)) continue;
        if (w <= static_cast<precedence>(i.root_precedence) || is_consequence(i, e)) return &i;
    }
    return nullptr;
}

// A port that goes down again a short while after it was back: flaps are one incident.
incident* engine::broken_again(const event& e, std::int64_t now_ms) {
    if (!is_port(e.fault, catalog::symptom::hca_port_down)) return nullptr;
    for (auto it = incidents_.rbegin(); it != incidents_.rend(); ++it) {
        auto& i = it->second;
        if (i.closed_by != fabric_is_back || now_ms - i.closed_ms > flaps_within_ms ||
            i.object.node != e.node || i.boot_id != e.boot_id || i.object.device != e.fault.device ||
            !is_the_culprits(i, e.fault))
            continue;
        i.closed_ms = i.held_ms = 0;
        i.closed_by.clear();
        i.line_ms = e.line_ms;
        return &i;
    }
    return nullptr;
}

}  // namespace banyan::fault
