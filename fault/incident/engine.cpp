// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "fault/catalog/symptom.hpp"
#include "fault/catalog/xid.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/incident/nvlink_rules.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {
namespace {

std::string gpu_words(const event& e) {
    return e.gpu >= 0 ? fmt::format("GPU {}", e.gpu) : fmt::format("GPU at {}", e.fault.bdf);
}

std::string cause_words(const event& e) {
    const auto& f = e.fault;
    if (f.kind == fault_kind::bus_loss) return gpu_words(e) + " fell off the bus";
    if (f.kind == fault_kind::sxid)
        return fmt::format("SXid {} NVSwitch {}{}", f.code, f.bdf,
                           f.link ? fmt::format(" link {}", *f.link) : "");
    if (f.kind == fault_kind::symptom) {
        const auto* row = catalog::find_symptom(f.code);
        // Root's own words; what a user says is evidence alone.
        if (row && catalog::is_a_jobs_end(f.code) && row->code != catalog::symptom::job_given_up)
            return fmt::format("{}: {}", row->description, e.text);
        return fmt::format("{}: {}", f.device, row ? row->description : "a fault that is not known");
    }
    if (f.code == 79) return fmt::format("Xid 79 {} fell off the bus", gpu_words(e));
    const auto* row = catalog::find_xid(f.code);
    auto out = fmt::format("Xid {} {}: {}", f.code, gpu_words(e),
                           row ? row->description : "a number that is not known");
    if (row && row->bucket == catalog::bucket::nvlink) {
        if (f.link && *f.link >= 0) out += fmt::format(", link {}", *f.link);
        if (const auto words = catalog::words_for(ruling_of(f).look); !words.empty())
            out += fmt::format(": {}", words);
    }
    return out;
}

std::string reason_of(const event& e, precedence w) {
    const auto& f = e.fault;
    if (f.kind == fault_kind::symptom) {
        const auto* row = catalog::find_symptom(f.code);
        return std::string(row ? row->reason : "gpu-unknown");
    }
    if (f.kind == fault_kind::sxid) return "nvswitch";
    if (f.kind == fault_kind::bus_loss || f.code == 79) return "gpu-xid-79";
    const auto* row = f.kind == fault_kind::xid ? catalog::find_xid(f.code) : nullptr;
    switch (w) {
        case precedence::node_out:
            return "gpu-reboot";
        case precedence::reset:
            return "gpu-reset";
        case precedence::app:
            return "gpu-app";
        case precedence::alert:
            return !row ? "gpu-unknown" : row->bucket == catalog::bucket::nvlink ? "gpu-nvlink" : "gpu-alert";
        default:
            return "gpu-note";
    }
}

severity severity_of(precedence w) {
    if (w == precedence::node_out) return severity::fatal;
    if (w == precedence::reset) return severity::error;
    return w == precedence::alert ? severity::warning : severity::notice;
}

// The driver's count of memory errors says less than its line on one.
bool counts_what_was_told(const incident& i, const event& e) {
    if (e.fault.kind != fault_kind::symptom || e.fault.bdf != i.object.bdf) return false;
    if (e.fault.code != static_cast<std::uint32_t>(catalog::symptom::gpu_memory)) return false;
    for (const std::uint32_t code : {48, 63, 64, 94, 95})
        if (i.codes.contains(code)) return true;
    return false;
}

bool is_fatal_switch_line(const kernel_fault& f) {
    return f.kind == fault_kind::sxid && !f.follow_up && f.severity == link_severity::fatal;
}

// Of several nodes GPUs have the same address.
bool is_another_gpu(const incident& i, const event& e) {
    return e.node != i.object.node || e.fault.bdf != i.object.bdf;
}

// A link that went down, or a switch's fatal error, is heard on all that used it.
bool follows_a_fallen_link(const incident& i, const event& e) {
    if (i.fallen == link_end::none && !(i.reason == "nvswitch" && i.severity >= severity::warning))
        return false;
    const auto end = fallen_end(e.fault);
    if (end != link_end::none) return is_another_gpu(i, e) && end != link_end::own && end <= i.fallen;
    return e.fault.kind == fault_kind::xid && speaks_of_an_nvlink(e.fault.code) &&
           precedence_of(e.fault) < precedence::reset;
}

// Of lines that ask for the same: the one that names the end where the link went down is the cause, and so is
// a link or a switch that failed beside links that only met errors.
bool is_the_cause(const incident& i, const event& e, precedence w) {
    if (w != static_cast<precedence>(i.root_precedence)) return false;
    if (w == precedence::reset) return i.fallen != link_end::none && fallen_end(e.fault) > i.fallen;
    if (w != precedence::alert || !i.xid || !speaks_of_an_nvlink(*i.xid)) return false;
    return is_fatal_switch_line(e.fault) || (e.fault.kind == fault_kind::xid && e.fault.code == 149);
}

// 94 and 95 follow a 48; a 145 on another GPU than the culprit's is a healthy peer that lost its partner.
bool is_consequence(const incident& i, const event& e) {
    if (follows_in_its_domain(i, e)) return true;
    if (follows_a_fallen_link(i, e)) return true;
    const auto code = e.fault.kind == fault_kind::xid ? e.fault.code : 0;
    if (counts_what_was_told(i, e)) return true;
    if ((code == 94 || code == 95) && i.codes.contains(48) && e.fault.bdf == i.object.bdf) return true;
    return code == 145 && is_another_gpu(i, e) && precedence_of(e.fault) < precedence::reset &&
           i.root_precedence >= static_cast<std::uint8_t>(precedence::alert);
}

// An application's error of another job is another job's.
bool of_another_job(const incident& i, const event& e, precedence w) {
    return w == precedence::app && i.root_precedence == static_cast<std::uint8_t>(precedence::app) &&
           e.job != 0 && i.accused != 0 && e.job != i.accused;
}

// Two GPUs of a node that each need a reset are two faults. What takes the machine down covers all of it, and
// what is less may be the first sign of the other's fault.
bool is_another_fault(const incident& i, const event& e, precedence w) {
    return w >= precedence::reset && i.root_precedence == static_cast<std::uint8_t>(precedence::reset) &&
           i.object.kind == object_kind::gpu && e.fault.kind != fault_kind::sxid &&
           e.fault.bdf != i.object.bdf && !is_consequence(i, e) && !is_the_cause(i, e, w);
}

// A symptom may be the first sign of what a card's own lines then tell, and the other way round.
bool speaks_of_a_card(const kernel_fault& f) {
    if (f.kind != fault_kind::symptom) return f.kind != fault_kind::sxid;
    const auto* row = catalog::find_symptom(f.code);
    return row && (row->part == catalog::part::gpu || row->part == catalog::part::pcie);
}

bool of_a_gpu(const kernel_fault& f) {
    const auto* row = f.kind == fault_kind::symptom ? catalog::find_symptom(f.code) : nullptr;
    return row && row->part == catalog::part::gpu;
}

object_kind kind_of(const kernel_fault& f) {
    if (f.kind == fault_kind::sxid) return object_kind::sw;
    if (f.kind != fault_kind::symptom) return object_kind::gpu;
    const auto* row = catalog::find_symptom(f.code);
    if (row && row->part == catalog::part::hca) return object_kind::hca;
    return row && row->part == catalog::part::gpu && !f.bdf.empty() ? object_kind::gpu : object_kind::node;
}

/// A GPU that fell off the bus counts as what the driver calls it.
std::optional<std::uint32_t> xid_of(const kernel_fault& f) {
    const bool has_one = f.kind == fault_kind::xid || f.kind == fault_kind::bus_loss;
    return has_one ? std::optional(f.code) : std::nullopt;
}

std::string symptom_of(const kernel_fault& f) {
    const auto* row = f.kind == fault_kind::symptom ? catalog::find_symptom(f.code) : nullptr;
    return row ? std::string(row->name) : std::string();
}

bool is_the_culprits(const incident& i, const kernel_fault& f) {
    if (f.kind == fault_kind::sxid) return i.sxid == f.code;
    if (f.kind == fault_kind::symptom) return !i.symptom.empty() && i.symptom == symptom_of(f);
    return i.xid == f.code;
}

bool is_port(const kernel_fault& f, catalog::symptom code) {
    return f.kind == fault_kind::symptom && f.code == static_cast<std::uint32_t>(code);
}

// A port that is up again is well, where nothing was done about it: nobody need close it.
void close_where_back(incident& i, const kernel_fault& f, std::int64_t now_ms) {
    if (!is_port(f, catalog::symptom::hca_port_up) || i.node_out_ms != 0 || i.closed_ms != 0) return;
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

// The whole card is out of reach: not an error that it met.
bool is_gone(const kernel_fault& f) {
    if (f.kind == fault_kind::bus_loss) return true;
    if (f.kind == fault_kind::xid) return f.code == 79;
    using enum catalog::symptom;
    for (const auto code : {hca_health, hca_command, pcie_fatal, pcie_lost})
        if (is_port(f, code)) return true;
    return false;
}

bool is_root_gone(const incident& i) {
    return i.xid == 79u || i.symptom == "hca-health" || i.symptom == "hca-command" ||
           i.symptom == "pcie-fatal" || i.symptom == "pcie-lost" || !i.lost.empty();
}

// Below the switch of the culprit, or of the switch that is accused.
bool shares_a_switch(const incident& i, const event& e) {
    return i.place && e.place && !e.place->pci_switch.empty() && i.place->pci_switch == e.place->pci_switch;
}

// Two cards below one PCIe switch were lost within the window: the switch may be the cause.
bool accuses_a_switch(const incident& i, const event& e) {
    return shares_a_switch(i, e) && is_gone(e.fault) && is_root_gone(i) &&
           (!i.lost.empty() || i.object.bdf != e.fault.bdf);
}

neighbours::card card_of(const incident& i, const event& e) {
    for (const auto& c : i.place->beside)
        if (c.bdf == e.fault.bdf) return c;
    return {e.fault.bdf, {}};
}

std::string_view verdict_words(std::uint32_t code) {
    switch (static_cast<recovery>(code)) {
        case recovery::none:
            return "nothing";
        case recovery::gpu_reset:
            return "a GPU reset";
        case recovery::node_reboot:
            return "a node reboot";
        case recovery::drain_p2p:
            return "peer traffic to be drained";
        case recovery::drain_and_reset:
            return "a drain and a GPU reset";
    }
    return "an action that is not known";
}

}  // namespace

bool lost_a_port(const incident& i) {
    const auto* down = catalog::find_symptom(static_cast<std::uint32_t>(catalog::symptom::hca_port_down));
    return i.symptom == down->name;
}

// The same fault of the same part is told again hours later: that is no new one while nobody has seen to it.
// What accuses an application is another fault each time, unless it is known to be of the same job.
bool engine::repeats(const incident& i, const event& e) {
    if (i.object.bdf.empty() || i.object.bdf != e.fault.bdf || !is_the_culprits(i, e.fault)) return false;
    const auto root = static_cast<precedence>(i.root_precedence);
    return root == precedence::app ? e.job != 0 && e.job == i.accused : root >= precedence::alert;
}

// The cards of an accused switch go on about it.
bool is_of_the_switch(const incident& i, const event& e) {
    return !i.lost.empty() && std::ranges::find(i.lost, e.fault.bdf, &neighbours::card::bdf) != i.lost.end();
}

// What goes on about one part of a node is one incident, however long it does. What a card's own lines
// tell and what is told of its place on the bus are one fault.
bool engine::belongs_to_symptom(const incident& i, const event& e, bool near) {
    const bool symptom = !i.object.device.empty();
    if (symptom && e.fault.kind == fault_kind::symptom && i.object.device == e.fault.device)
        return !of_another_job(i, e, precedence_of(e.fault));
    if (!near || !speaks_of_a_card(e.fault)) return false;
    if (!e.fault.bdf.empty()) return i.object.bdf == e.fault.bdf;
    return !symptom && i.object.kind == object_kind::gpu && of_a_gpu(e.fault);
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
        // Of a whole node these were closed by themselves, and nobody looked at its parts.
        const bool by_itself = i.reason == silent_reason || i.reason == stuck_reason;
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

// By what another node of the domain tells: that is the culprit then, in an incident of its own.
bool engine::is_outweighed(const incident& i, const event& e, precedence w) const {
    if (!crosses_nodes(i, e) || !is_of_links_alone(i) || is_an_nvlink_domain(i)) return false;
    if (accuses_its_domain(i, e)) return true;
    return shows_a_link(e.fault) && (w > static_cast<precedence>(i.root_precedence) || is_the_cause(i, e, w));
}

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

}  // namespace banyan::fault
