// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/confidence.hpp"

#include <algorithm>
#include <array>

#include "fault/catalog/symptom.hpp"
#include "fault/catalog/xid.hpp"
#include "fault/event.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {
namespace {

using enum confidence;

sureness of_the_fabric(const incident& i) {
    if (i.object.kind == object_kind::manager)
        return {likely, "the subnet manager was asked; the way to it may be at fault, too"};
    if (i.boot_id == told_by_ufm) return {likely, "UFM tells of it, and a look at the fabric cannot show it"};
    if (i.reason == "fabric-switch" || i.reason == "host-lost")
        return {likely, "it is inferred: all its links are missing from the fabric"};
    if (i.closed_by == fabric_was_back)
        return {likely, "the subnet manager told of its port; a look at the fabric found it there again"};
    return {certain, "the fabric was looked at, and compared with the accepted one"};
}

sureness of_a_symptom(const incident& i) {
    using catalog::part;
    const auto rows = catalog::symptoms();
    const auto row = std::ranges::find(rows, i.symptom, &catalog::symptom_row::name);
    if (row == rows.end()) return {suspected, "the line is of a kind that is not known"};
    if (row->code == catalog::symptom::pcie_switch) {
        const bool all = i.place && i.lost.size() > i.place->beside.size();
        return all ? sureness{likely, "all GPUs and HCAs below the switch were lost together"}
                   : sureness{suspected, "several below the switch were lost together, others were not"};
    }
    switch (row->part) {
        case part::job:
            return {suspected, "the line speaks of the job; what it ran on is not known to be at fault"};
        case part::pcie:
            return {suspected, "a PCIe link has two ends, and the line comes from one"};
        case part::kernel:
            return {suspected, "the line tells that the kernel stands still, not why"};
        case part::file_system:
            return {suspected, "the disk or the server below the file system may be at fault"};
        default:
            break;
    }
    switch (row->code) {
        using enum catalog::symptom;
        case hca_port_down:
        case hca_port_up:
        case hca_transmit:
        case hca_errors:
            return {suspected, "the cable or its other end may be at fault"};
        default:
            break;
    }
    return {likely, "the kernel's line names the part"};
}

sureness of_a_gpu(const incident& i) {
    if (i.verdict_on_culprit)
        return {certain, "the driver's own verdict (Xid 154) asks for a reset or a reboot of it"};
    const auto* row = i.xid ? catalog::find_xid(*i.xid) : nullptr;
    if (i.fallen == link_end::own)
        return {likely, "the registers in the driver's line say that the link went down at this end"};
    if (i.fallen == link_end::peer)
        return {suspected, "the other end of the link went down first: its GPU or NVSwitch may be at fault"};
    if (i.fallen == link_end::unclear)
        return {suspected, "the link went down, and the line does not say at which end"};
    const auto weight = static_cast<precedence>(i.root_precedence);
    if (row && row->bucket == catalog::bucket::nvlink && weight == precedence::reset)
        return {likely, "the registers in the driver's line name the GPU's own part of the link"};
    if (row && row->bucket == catalog::bucket::nvlink && weight != precedence::app)
        return {suspected, "an NVLink has two ends, and the line comes from one"};
    switch (weight) {
        case precedence::app:
            return {suspected, "the line accuses the application; the GPU only if other jobs meet it, too"};
        case precedence::sympathetic:
            return {suspected, "the line is the echo of a fault that was not seen"};
        case precedence::alert:
            return {suspected, "the line's number is not one that names the part at fault"};
        default:
            return {likely, "the driver's line names the GPU"};
    }
}

constexpr std::array<std::string_view, 3> levels{"suspected", "likely", "certain"};

}  // namespace

sureness sureness_of(const incident& i) {
    if (is_an_nvlink_domain(i))
        return {
            likely,
            "GPUs of three or more nodes told of their NVLinks at once, and no GPU of a fault of its own"};
    switch (kind_of(i)) {
        case line_kind::xid:
            return of_a_gpu(i);
        case line_kind::sxid:
            return {suspected, "an NVLink has two ends, and the line comes from one"};
        case line_kind::symptom:
            return of_a_symptom(i);
        case line_kind::fabric:
            return of_the_fabric(i);
        case line_kind::silence:
            return {suspected, "nothing on it answers: the node, its power or the way to it"};
        case line_kind::stuck:
            return {likely, "all other nodes that were asked have ended the job's last run"};
    }
    return {};
}

std::string_view name_of(confidence c) { return levels[static_cast<std::size_t>(c)]; }

}  // namespace banyan::fault
