// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/line_words.hpp"

#include <fmt/format.h>

#include "fault/catalog/symptom.hpp"
#include "fault/catalog/xid.hpp"

namespace banyan::fault {
namespace {

std::string gpu_words(const event& e) {
    return e.gpu >= 0 ? fmt::format("GPU {}", e.gpu) : fmt::format("GPU at {}", e.fault.bdf);
}

}  // namespace

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

severity severity_of(precedence w) {
    if (w == precedence::node_out) return severity::fatal;
    if (w == precedence::reset) return severity::error;
    return w == precedence::alert ? severity::warning : severity::notice;
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

}  // namespace banyan::fault
