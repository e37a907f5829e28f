// SPDX-License-Identifier: BSD-3-Clause
//
// How an incident comes to its culprit.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fault/catalog/symptom.hpp"
#include "fault/incident/engine.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/incident/line_words.hpp"
#include "fault/incident/nvlink_rules.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {
namespace {

neighbours::card card_of(const incident& i, const event& e) {
    for (const auto& c : i.place->beside)
        if (c.bdf == e.fault.bdf) return c;
    return {e.fault.bdf, {}};
}

}  // namespace

void engine::become_root(incident& i, const event& e, precedence w) {
    const auto before = static_cast<precedence>(i.root_precedence);
    // A verdict (154) speaks about the fault before it: the earlier line stays the cause, unless it was
    // harmless.
    const bool verdict = e.fault.kind == fault_kind::xid && e.fault.code == 154;
    const bool of_an_nvlink = i.xid && speaks_of_an_nvlink(*i.xid);
    const bool named = before >= (of_an_nvlink ? precedence::app : precedence::alert);
    const bool keep = verdict && named && i.object.bdf == e.fault.bdf;
    if (!keep) {
        // What is not of a GPU has no domain, and its node is in the same one as before.
        if (i.object.node != e.node || !e.nvlink_domain.empty()) {
            if (i.nvlink_domain != e.nvlink_domain) i.shown.clear();
            i.nvlink_domain = e.nvlink_domain;
        }
        i.own_fault = is_a_gpus_own(e.fault);
        i.object.kind = kind_of(e.fault);
        i.object.node = e.node;
        i.object.gpu = e.fault.kind == fault_kind::sxid ? -1 : e.gpu;
        i.object.bdf = e.fault.bdf;
        i.object.device = e.fault.device;
        i.object.uuid = e.uuid;
        i.object.serial = e.serial;
        i.boot_id = e.boot_id;  // of a job's the heavier fault may be on another node
        i.cause = cause_words(e);
        i.xid = xid_of(e.fault);
        i.sxid = e.fault.kind == fault_kind::sxid ? std::optional(e.fault.code) : std::nullopt;
        i.symptom = symptom_of(e.fault);
        i.fallen = fallen_end(e.fault);
        i.place = e.place;
        i.lost.clear();
        i.seen.clear();
        i.swept.clear();  // it was of the fault before
        if (!is_told_of_a_job(e.fault)) i.firsts.clear();
        i.verdict_on_culprit = false;
        i.accused = e.job;
        if (e.job != 0) {
            i.jobs = {e.job};
            i.cause += fmt::format(", job {}", e.job);
        }
    }
    if (verdict)
        i.cause += fmt::format("; the driver asks for {}", verdict_words(e.fault.recovery.value_or(~0u)));
    // The lines of what it is now are none yet.
    if (is_told_of_a_job(i) && !is_told_of_a_job(e.fault)) i.last_ms = e.line_ms;
    i.reason = reason_of(e, w);
    i.severity = severity_of(w);
    i.root_precedence = static_cast<std::uint8_t>(w);
    if (i.line_ms == 0 || w >= precedence::reset)
        i.line_ms = e.line_ms;  // latencies count from the line that decides
}

// What is done follows from the heaviest of them, as before.
void engine::accuse_switch(incident& i, const event& e, precedence w) {
    const auto add = [&](neighbours::card c) {
        if (std::ranges::find(i.lost, c.bdf, &neighbours::card::bdf) != i.lost.end()) return;
        i.lost.push_back(std::move(c));
        i.swept.clear();
    };
    if (i.lost.empty()) {
        // The place of the first is the others', but that it is itself among them.
        neighbours::card first{i.object.bdf, {}};
        for (const auto& c : e.place->beside)
            if (c.bdf == first.bdf) first = c;
        add(std::move(first));
        const auto words = catalog::find_symptom(static_cast<std::uint32_t>(catalog::symptom::pcie_switch));
        i.object.kind = object_kind::node;
        i.object.device = "PCIe switch " + i.place->pci_switch;
        i.object.bdf.clear();
        i.object.uuid.clear();
        i.object.serial.clear();
        i.object.gpu = -1;
        i.xid.reset();
        i.sxid.reset();
        i.symptom = words->name;
        i.reason = words->reason;
        i.fallen = link_end::none;
        i.verdict_on_culprit = false;
    }
    add(card_of(i, e));
    std::string names;
    for (const auto& c : i.lost) names += (names.empty() ? "" : ", ") + c.text();
    i.cause = fmt::format("{}: {} of the {} cards below it were lost together: {}", i.object.device,
                          i.lost.size(), i.place->beside.size() + 1, names);
    const auto heaviest = std::max(w, static_cast<precedence>(i.root_precedence));
    i.root_precedence = static_cast<std::uint8_t>(heaviest);
    i.severity = severity_of(heaviest);
}

// A crash that was the first of its step says something of its node; one that follows an end of that step
// says nothing, however much it weighs. True: it weighs more than what was known.
bool engine::hear_of_job(incident& i, const event& e, precedence w) {
    const auto before = static_cast<precedence>(i.root_precedence);
    if (!note_first(i, e)) return false;
    // The step had failed before the crash that was told first.
    const bool excused = before > w && is_of_a_jobs_end(i) && !accuses_a_node(i);
    if (w > before || excused) {
        become_root(i, e, w);
        return w > before;
    }
    // A person looks at the node that an alert names.
    const bool alerts = i.decided >= static_cast<std::uint8_t>(step_kind::alert) && !i.rule.empty();
    if (w == before && w >= precedence::app && !alerts && i.object.node != e.node) {
        i.object.node = e.node;
        i.boot_id = e.boot_id;
        i.cause = fmt::format("{}, job {}", cause_words(e), e.job);
    }
    return false;
}

}  // namespace banyan::fault
