// SPDX-License-Identifier: BSD-3-Clause
#include "fault/parse/reading.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "fault/catalog/symptom.hpp"

namespace banyan::fault {

reading weighed(precedence weight) {
    reading out;
    switch (weight) {
        case precedence::sympathetic:
        case precedence::note:
            out.severity = "notice", out.action = "none";
            break;
        case precedence::app:
            out.severity = "notice", out.action = "job";
            break;
        case precedence::alert:
            out.severity = "warning", out.action = "alert";
            break;
        case precedence::reset:
            out.severity = "error", out.action = "drain";
            break;
        case precedence::node_out:
            out.severity = "fatal", out.action = "node-out";
            break;
    }
    return out;
}

reading reading_of(const kernel_fault& fault, std::string_view text) {
    auto out = weighed(precedence_of(fault));
    out.source = "kernel";
    out.device = fault.device.empty() ? fault.bdf : fault.device;
    out.text = text;
    out.fault = fault;
    switch (fault.kind) {
        case fault_kind::xid:
            out.kind = "xid";
            out.code = fault.code;
            break;
        case fault_kind::sxid:
            out.kind = "sxid";
            out.code = fault.code;
            break;
        case fault_kind::bus_loss:
            out.kind = "bus-loss";
            break;
        case fault_kind::symptom: {
            const auto* row = catalog::find_symptom(fault.code);
            out.kind = row ? row->name : "unknown";
            break;
        }
    }
    return out;
}

std::optional<reading> reading_of(const opensm_event& found) {
    const bool lost = found.kind == opensm_kind::removed || found.kind == opensm_kind::unlinked ||
                      found.kind == opensm_kind::port_down || found.kind == opensm_kind::manager_ends;
    auto out = weighed(lost ? precedence::alert : precedence::note);
    out.source = "opensm";
    out.node = found.node;
    out.text = found.text;
    switch (found.kind) {
        case opensm_kind::subnet_up:
            return {};
        case opensm_kind::link_trap:
            out.kind = "link-trap";
            out.code = 128;
            out.device = fmt::format("LID {}", found.lid);
            break;
        case opensm_kind::removed:
        case opensm_kind::discovered:
            out.kind = lost ? "port-removed" : "port-discovered";
            out.device = fmt::format("0x{:016x}", found.guid);
            break;
        case opensm_kind::unlinked:
            out.kind = "link-down";
            out.device = fmt::format("0x{:016x} port {} - 0x{:016x} port {}", found.guid, found.port,
                                     found.remote_guid, found.remote_port);
            break;
        case opensm_kind::port_down:
        case opensm_kind::port_up:
            out.kind = lost ? "port-down" : "port-up";
            out.device = fmt::format("0x{:016x} port {}", found.guid, found.port);
            break;
        case opensm_kind::manager_ends:
        case opensm_kind::manager_state:
            out.kind = lost ? "manager-ended" : "manager-state";
            break;
    }
    return out;
}

std::string json_line(const reading& r) {
    nlohmann::ordered_json out;
    const auto text = [&](const char* key, std::string_view value) {
        out[key] = value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
    };
    text("source", r.source);
    text("time", r.time);
    text("node", r.node);
    text("device", r.device);
    text("kind", r.kind);
    out["code"] = r.code ? nlohmann::ordered_json(*r.code) : nlohmann::ordered_json();
    text("severity", r.severity);
    text("action", r.action);
    text("text", printable(r.text));
    return out.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace banyan::fault
