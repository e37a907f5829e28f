// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/nvlink_rules.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/catalog/xid.hpp"

namespace banyan::fault {
namespace {

/// GPUs of so many nodes do not share one end of a link.
constexpr std::size_t too_many_for_a_link = 3;

bool is_of_a_gpu(const kernel_fault& f) {
    return f.kind == fault_kind::xid || f.kind == fault_kind::bus_loss;
}

/// How `closed_by` begins.
constexpr std::string_view folds = "incident ";

/// A storm that a node tells of is one, whenever it began.
bool goes_on(const incident& i, const event& e, std::int64_t window_ms) {
    return std::ranges::any_of(i.evidence, [&](const evidence_line& line) {
        return line.source == e.node && std::abs(e.line_ms - line.at_ms) <= window_ms;
    });
}

bool was_shown_on(const incident& i, const std::string& node) {
    return std::ranges::find(i.shown, node) != i.shown.end();
}

}  // namespace

// A line that says that a link went down, and that the GPU needs a reset for it. A weak signal is met at
// either end.
link_end fallen_end(const kernel_fault& f) {
    using catalog::link_look;
    if (f.kind != fault_kind::xid || f.code != 149 || !f.registers) return link_end::none;
    const auto& unit = f.registers->unit;
    const bool of_a_link = unit.starts_with("NETIR_LINK_") || unit == "NETIR" || unit == "NETIR_INT";
    const auto ruling = ruling_of(f);
    if (!of_a_link || ruling.action != catalog::link_action::reset_gpu) return link_end::none;
    if (ruling.look == link_look::peer) return link_end::peer;
    return ruling.look == link_look::software ? link_end::own : link_end::unclear;
}

bool speaks_of_an_nvlink(std::uint32_t xid) { return xid == 74 || (xid >= 144 && xid <= 148); }

bool shows_a_link(const kernel_fault& f) {
    if (f.kind != fault_kind::xid || f.caused_by) return false;
    const auto* row = catalog::find_xid(f.code);
    if (!row || row->bucket != catalog::bucket::nvlink) return false;
    const auto ruling = ruling_of(f);
    switch (ruling.look) {
        using enum catalog::link_look;
        case ecc:
        case support:
        case software:
        case host:
            return false;
        default:
            break;
    }
    if (ruling.action == catalog::link_action::reset_gpu) return fallen_end(f) != link_end::none;
    return ruling.action != catalog::link_action::ignore;
}

bool is_a_verdict(const kernel_fault& f) { return f.kind == fault_kind::xid && f.code == 154; }

bool is_a_gpus_own(const kernel_fault& f) {
    return is_of_a_gpu(f) && !is_a_verdict(f) && precedence_of(f) >= precedence::reset && !shows_a_link(f);
}

bool crosses_nodes(const incident& i, const event& e) {
    if (i.nvlink_domain.empty() || i.nvlink_domain != e.nvlink_domain || !is_of_a_gpu(e.fault)) return false;
    return i.object.node != e.node || is_an_nvlink_domain(i);
}

bool is_of_links_alone(const incident& i) {
    if (i.own_fault || i.shown.empty()) return false;
    if (is_an_nvlink_domain(i)) return true;
    const auto* row = i.xid && i.symptom.empty() ? catalog::find_xid(*i.xid) : nullptr;
    return i.object.kind == object_kind::gpu && row && row->bucket == catalog::bucket::nvlink;
}

bool belongs_to_its_domain(const incident& i, const event& e, precedence w, std::int64_t window_ms) {
    if (i.nvlink_domain.empty() || i.nvlink_domain != e.nvlink_domain || !is_of_a_gpu(e.fault)) return false;
    // What somebody cancelled was for what was known then.
    if (is_a_gpus_own(e.fault) || !i.cancelled_by.empty()) return false;
    if (!i.own_fault && !is_of_links_alone(i)) return false;
    // Switches fail for as long as they do. A GPU that goes on about its fault, or a link, does not answer
    // for what other nodes tell hours later.
    const bool switches = is_an_nvlink_domain(i), here = was_shown_on(i, e.node);
    const bool near = std::abs(e.line_ms - (switches ? i.last_ms : i.line_ms)) <= window_ms;
    if (shows_a_link(e.fault)) return near || (here && (switches || goes_on(i, e, window_ms)));
    return near && here && (w == precedence::sympathetic || is_a_verdict(e.fault));
}

bool was_seen_to(const incident& i, const event& e) {
    return was_shown_on(i, e.node) && !is_a_verdict(e.fault);
}

bool follows_in_its_domain(const incident& i, const event& e) {
    if (!crosses_nodes(i, e) || is_a_gpus_own(e.fault)) return false;
    return i.own_fault || is_an_nvlink_domain(i) || !shows_a_link(e.fault);
}

bool add_shown(incident& i, const std::string& node) {
    if (was_shown_on(i, node) || i.shown.size() >= incident::max_shown) return false;
    i.shown.push_back(node);
    return true;
}

bool note_shown(incident& i, const event& e) {
    if (e.nvlink_domain.empty() || !shows_a_link(e.fault)) return false;
    // The agent's first look at its GPUs came later than their first line.
    if (i.nvlink_domain.empty() && i.object.kind == object_kind::gpu && i.object.node == e.node)
        i.nvlink_domain = e.nvlink_domain;
    if (i.nvlink_domain != e.nvlink_domain || !add_shown(i, e.node)) return false;
    if (i.own_fault || is_of_links_alone(i)) return true;
    i.shown.clear();  // it is of something else, beside which a link failed
    return false;
}

bool accuses_its_domain(const incident& i, const event& e) {
    if (!is_of_links_alone(i) || is_an_nvlink_domain(i) || !shows_a_link(e.fault)) return false;
    return i.shown.size() + (was_shown_on(i, e.node) ? 0 : 1) >= too_many_for_a_link;
}

void name_nodes(incident& i) {
    i.cause = fmt::format("NVLinks failed on GPUs of {} nodes of one NVLink domain at once: {}",
                          i.shown.size(), compress_hostlist(i.shown));
}

void accuse_domain(incident& i) {
    i.object.kind = object_kind::sw;
    i.object.device = "NVLink domain " + i.nvlink_domain;
    i.object.bdf.clear();
    i.object.uuid.clear();
    i.object.serial.clear();
    i.object.gpu = -1;
    i.reason = nvlink_domain_reason;
    i.xid.reset();
    i.symptom.clear();
    i.swept.clear();
    i.place.reset();
    i.seen.clear();
    i.fallen = link_end::none;
    i.verdict_on_culprit = false;
    i.accused = 0;
    i.jobs.clear();
    // Its GPUs may all ask for a reset; which of the nodes goes out for that is a person's decision.
    i.root_precedence = static_cast<std::uint8_t>(precedence::alert);
    i.severity = severity::error;
    name_nodes(i);
}

bool may_be_folded(const incident& i) {
    return is_of_links_alone(i) && i.closed_ms == 0 && !i.begun && i.node_out_ms == 0 &&
           i.approved_by.empty() && i.cancelled_by.empty() && i.followed.empty() && i.swept.empty();
}

void fold_into(incident& home, incident& i) {
    for (const auto& node : i.shown) add_shown(home, node);
    const auto lines = home.lines + i.lines;
    for (const auto& line : i.evidence) home.add_evidence(line);
    home.lines = lines;  // those that it did not keep, too
    if (is_an_nvlink_domain(home))
        for (const auto& [code, count] : i.codes) home.codes[code] += count;
    i.closed_ms = std::max(i.incident_ms, home.incident_ms);
    i.closed_by = folded_into(home);
    i.state = incident_state::done;
    i.held_ms = 0;
}

bool was_folded(const incident& i) {
    return i.closed_ms != 0 && i.closed_by.starts_with(folds) && is_of_links_alone(i);
}

std::string folded_into(const incident& home) { return std::string(folds) + home.id(); }

}  // namespace banyan::fault
