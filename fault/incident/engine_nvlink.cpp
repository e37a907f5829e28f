// SPDX-License-Identifier: BSD-3-Clause
//
// Incidents of NVLinks that several nodes share.
#include <algorithm>
#include <cstdlib>

#include "fault/incident/engine.hpp"
#include "fault/incident/nvlink_rules.hpp"
#include "fault/incident/relations.hpp"

namespace banyan::fault {

// A verdict is of what its own GPU told, where that is an incident, and asks for no less where its node is
// out. What a GPU tells of its links is of an incident of its own alone where that is nobody's evidence any
// more.
bool engine::has_its_own(const event& e, precedence w) const {
    if (e.nvlink_domain.empty()) return false;
    return std::ranges::any_of(incidents_, [&](const auto& pair) {
        const auto& i = pair.second;
        if (i.closed_ms != 0 || i.object.node != e.node || is_an_nvlink_domain(i)) return false;
        if (is_a_verdict(e.fault) && i.node_out_ms != 0) return true;
        if (shows_a_link(e.fault) && (!is_of_links_alone(i) || may_be_folded(i))) return false;
        return i.object.bdf == e.fault.bdf && belongs(i, e, w);
    });
}

// By what another node of the domain tells: that is the culprit then, in an incident of its own.
bool engine::is_outweighed(const incident& i, const event& e, precedence w) const {
    if (!crosses_nodes(i, e) || !is_of_links_alone(i) || is_an_nvlink_domain(i)) return false;
    if (accuses_its_domain(i, e)) return true;
    return shows_a_link(e.fault) && (w > static_cast<precedence>(i.root_precedence) || is_the_cause(i, e, w));
}

std::vector<std::uint64_t> engine::fold_links(std::uint64_t number) {
    std::vector<std::uint64_t> out;
    auto* home = find(number);
    if (!home || home->nvlink_domain.empty()) return out;
    for (auto& [n, i] : incidents_) {
        if (n == number || i.closed_ms != 0 || !is_of_links_alone(i) ||
            i.nvlink_domain != home->nvlink_domain)
            continue;
        // That a node is dead is known some time after it is.
        const auto told_ms = home->reason == silent_reason ? i.last_ms : i.line_ms;
        if (std::abs(told_ms - home->line_ms) > window_ms_) continue;
        if (may_be_folded(i)) {
            fold_into(*home, i);
            out.push_back(n);
        } else {
            home->actions.push_back({"beside", i.id(), home->incident_ms,
                                     "it may follow from this: stays, since something was begun for it or "
                                     "somebody ruled on it"});
        }
    }
    if (!out.empty()) touch();
    return out;
}

}  // namespace banyan::fault
