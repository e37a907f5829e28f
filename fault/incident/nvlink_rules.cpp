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

bool is_a_gpus_own(const kernel_fault& f) {
    const bool verdict = f.kind == fault_kind::xid && f.code == 154;  // on whatever came before
    return is_of_a_gpu(f) && !verdict && precedence_of(f) >= precedence::reset && !shows_a_link(f);
}

bool crosses_nodes(const incident& i, const event& e) {
    if (i.nvlink_domain.empty() || i.nvlink_domain != e.nvlink_domain || !is_of_a_gpu(e.fault)) return false;
    return i.object.node != e.node || is_an_nvlink_domain(i);
}

bool belongs_to_its_domain(const incident& i, const event& e, precedence w, std::int64_t window_ms) {
    if (i.nvlink_domain.empty() || i.nvlink_domain != e.nvlink_domain || !is_of_a_gpu(e.fault)) return false;
    const bool near = std::abs(e.line_ms - i.last_ms) <= window_ms, here = was_shown_on(i, e.node);
    if (shows_a_link(e.fault)) {
        const bool goes_on = is_an_nvlink_domain(i) || (i.own_fault && i.node_out_ms != 0);
        return (near && (i.own_fault || !i.shown.empty())) || (here && goes_on);
    }
    // What was done to a node, or decided by a person, was for the culprit that was known then.
    if (is_a_gpus_own(e.fault))
        return near && !i.shown.empty() && !i.own_fault && i.node_out_ms == 0 && i.cancelled_by.empty();
    return near && here && (w == precedence::sympathetic || e.fault.code == 154);
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
    return i.nvlink_domain == e.nvlink_domain && add_shown(i, e.node);
}

bool accuses_its_domain(const incident& i) {
    return !i.own_fault && i.object.kind == object_kind::gpu && i.cancelled_by.empty() &&
           i.shown.size() >= too_many_for_a_link;
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
    // Its GPUs may all ask for a reset; which of the nodes goes out for that is a person's decision.
    i.root_precedence = static_cast<std::uint8_t>(precedence::alert);
    i.severity = severity::error;
    name_nodes(i);
}

}  // namespace banyan::fault
