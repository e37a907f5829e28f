// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/relations.hpp"

#include <algorithm>

#include "fault/catalog/xid.hpp"
#include "fault/incident/line_words.hpp"
#include "fault/incident/nvlink_rules.hpp"

namespace banyan::fault {
namespace {

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

// A link that went down, or a switch's fatal error, is heard on all that used it.
bool follows_a_fallen_link(const incident& i, const event& e) {
    if (i.fallen == link_end::none && !(i.reason == "nvswitch" && i.severity >= severity::warning))
        return false;
    const auto end = fallen_end(e.fault);
    if (end != link_end::none) return is_another_gpu(i, e) && end != link_end::own && end <= i.fallen;
    return e.fault.kind == fault_kind::xid && speaks_of_an_nvlink(e.fault.code) &&
           precedence_of(e.fault) < precedence::reset;
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

}  // namespace

bool is_port(const kernel_fault& f, catalog::symptom code) {
    return f.kind == fault_kind::symptom && f.code == static_cast<std::uint32_t>(code);
}

// Of several nodes GPUs have the same address.
bool is_another_gpu(const incident& i, const event& e) {
    return e.node != i.object.node || e.fault.bdf != i.object.bdf;
}

bool is_the_culprits(const incident& i, const kernel_fault& f) {
    if (f.kind == fault_kind::sxid) return i.sxid == f.code;
    if (f.kind == fault_kind::symptom) return !i.symptom.empty() && i.symptom == symptom_of(f);
    return i.xid == f.code;
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

bool lost_a_port(const incident& i) {
    const auto* down = catalog::find_symptom(static_cast<std::uint32_t>(catalog::symptom::hca_port_down));
    return i.symptom == down->name;
}

// Two cards below one PCIe switch were lost within the window: the switch may be the cause.
bool accuses_a_switch(const incident& i, const event& e) {
    return shares_a_switch(i, e) && is_gone(e.fault) && is_root_gone(i) &&
           (!i.lost.empty() || i.object.bdf != e.fault.bdf);
}

// The cards of an accused switch go on about it.
bool is_of_the_switch(const incident& i, const event& e) {
    return !i.lost.empty() && std::ranges::find(i.lost, e.fault.bdf, &neighbours::card::bdf) != i.lost.end();
}

}  // namespace banyan::fault
