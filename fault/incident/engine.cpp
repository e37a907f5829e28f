// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/engine.hpp"

#include <algorithm>
#include <utility>

#include "fault/incident/job_rules.hpp"
#include "fault/incident/line_words.hpp"
#include "fault/incident/nvlink_rules.hpp"
#include "fault/incident/relations.hpp"

namespace banyan::fault {
namespace {

// A port that is up again is well, where nothing was done about it: nobody need close it.
void close_where_back(incident& i, const kernel_fault& f, std::int64_t now_ms) {
    if (!is_port(f, catalog::symptom::hca_port_up) || i.node_out_ms != 0 || i.closed_ms != 0) return;
    if (i.kept_from_sweep) return;  // nobody looks for the cause of a drain in what is closed
    if (!lost_a_port(i) && i.symptom != symptom_of(f)) return;  // the HCA has more than that
    i.closed_ms = now_ms;
    i.closed_by = fabric_is_back;
    i.state = incident_state::done;
}

// The kernel and the HCA itself tell of the same loss: one that follows a return is another.
void count_flap(incident& home, const kernel_fault& f) {
    if (f.kind != fault_kind::symptom) return;
    const auto code = static_cast<catalog::symptom>(f.code);
    if (code == catalog::symptom::hca_port_up) {
        home.back = true;
        home.ports.clear();  // it is told when the last of them is up
    }
    if (code == catalog::symptom::hca_port_down && !f.port.empty() &&
        home.ports.size() < incident::max_ports && std::ranges::find(home.ports, f.port) == home.ports.end())
        home.ports.push_back(f.port);
    if (code == catalog::symptom::hca_port_down && std::exchange(home.back, false)) ++home.flaps;
}

}  // namespace

engine::outcome engine::absorb(const event& e, std::int64_t now_ms) {
    outcome out;
    auto w = precedence_of(e.fault);
    bool first_of_node = false;
    auto* home = home_of(e, w);
    if (!home && (home = past_home_of(e, w))) out.past = true;
    if (!home && (home = broken_again(e, now_ms))) out.escalated = home->node_out_ms == 0;
    if (!home) home = end_explained_by(e, w);
    if (home && is_consequence(*home, e)) w = precedence::sympathetic;
    std::vector<std::string> shown;
    const bool was_own = home && home->own_fault;
    const bool outweighed = home && !out.past && is_outweighed(*home, e, w);
    if (outweighed) {
        shown = home->shown;
        home = nullptr;
        w = precedence_of(e.fault);
    }
    if (!home) {
        incident fresh;
        fresh.boot_id = e.boot_id;
        become_root(fresh, e, w);
        if (outweighed) {
            fresh.shown = std::move(shown);
            if (accuses_its_domain(fresh, e)) accuse_domain(fresh);
        }
        if (is_told_of_a_job(e.fault)) note_first(fresh, e);
        home = &open(std::move(fresh), now_ms);
        out.created = true;
        out.escalated = w > precedence::sympathetic;
    } else if (out.past) {
        // It is evidence, and changes nothing.
    } else if (is_told_of_a_job(e.fault)) {
        out.escalated = is_told_of_a_job(*home) && hear_of_job(*home, e, w);
    } else if (crosses_nodes(*home, e)) {
        // Of another node's culprit it is evidence, whatever it weighs.
    } else if (accuses_a_switch(*home, e) || is_of_the_switch(*home, e)) {
        // It is out, or was: see below.
        const bool anew = w >= precedence::reset && e.line_ms - home->last_ms > window_ms_;
        out.escalated = anew || w > static_cast<precedence>(home->root_precedence);
        if (out.escalated) home->line_ms = e.line_ms;
        accuse_switch(*home, e, w);
    } else if (w > static_cast<precedence>(home->root_precedence)) {
        become_root(*home, e, w);
        out.escalated = true;
    } else if (is_the_cause(*home, e, w)) {
        become_root(*home, e, w);
    } else if (w >= precedence::reset && e.line_ms - home->last_ms > window_ms_) {
        // It is out, or was: somebody may have returned the node meanwhile.
        home->line_ms = e.line_ms;
        out.escalated = true;
    }
    if (!out.past) first_of_node |= note_shown(*home, e);
    add(*home, e, out.created || out.escalated || first_of_node);
    if (outweighed || (home->own_fault && !was_own)) out.folded = fold_links(home->number);
    if ((out.created || first_of_node) && is_an_nvlink_domain(*home)) name_nodes(*home);
    close_where_back(*home, e.fault, now_ms);
    out.number = home->number;
    touch();
    return out;
}

void engine::add(incident& home, const event& e, bool decides) {
    // The numbers of Xids are counted; others have numbers of their own.
    const bool counted = e.fault.kind == fault_kind::xid || e.fault.kind == fault_kind::bus_loss;
    const bool first_of_kind = counted && !home.codes.contains(e.fault.code);
    home.add_evidence({e.line_ms, e.node, e.text, e.repeats,
                       decides || first_of_kind || e.fault.recovery.has_value() || is_given_up(e.fault)});
    if (counted) home.codes[e.fault.code] += 1 + e.repeats;
    if (e.fault.recovery) home.verdict = e.fault.recovery;
    count_flap(home, e.fault);
    if (e.fault.recovery && !is_another_gpu(home, e) && precedence_of(e.fault) >= precedence::reset)
        home.verdict_on_culprit = true;
    // What another node of the domain tells is neither the culprit's fault once more, nor of its job.
    const bool of_culprit = is_the_culprits(home, e.fault) && !crosses_nodes(home, e);
    if (of_culprit) home.add_seen(e.line_ms, window_ms_);
    if (home.accused == 0 && e.job != 0 && of_culprit) {
        home.accused = e.job;
        home.jobs = {e.job};
    }
    // What follows from a fault does not make it go on.
    const bool follows = crosses_nodes(home, e) && !is_an_nvlink_domain(home);
    if (!follows && (is_told_of_a_job(home) || !is_told_of_a_job(e.fault)))
        home.last_ms = std::max(home.last_ms, e.line_ms);
}

incident& engine::open(incident made, std::int64_t now_ms) {
    make_room_for(made);
    made.number = next_++;
    made.incident_ms = now_ms;
    if (made.line_ms == 0) made.line_ms = now_ms;
    made.last_ms = std::max(made.last_ms, made.line_ms);
    touch();
    const auto number = made.number;
    return incidents_.insert_or_assign(number, std::move(made)).first->second;
}

void engine::restore(incident kept) {
    next_ = std::max(next_, kept.number + 1);
    const auto number = kept.number;
    incidents_.insert_or_assign(number, std::move(kept));
}

incident* engine::find(std::uint64_t number) {
    const auto it = incidents_.find(number);
    return it == incidents_.end() ? nullptr : &it->second;
}

}  // namespace banyan::fault
