// SPDX-License-Identifier: BSD-3-Clause
#include "fault/event.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "fault/catalog/symptom.hpp"
#include "fault/catalog/xid.hpp"
#include "hardware/gpus.hpp"

namespace banyan::fault {
namespace {

using nlohmann::json;

constexpr std::size_t max_name = 256, max_text = 512, max_device = 64;

std::optional<std::uint32_t> optional_number(const json_fields& in, const char* key) {
    const auto n = in.number(key, UINT32_MAX);
    return n ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
}

result<link_registers> registers_from(const json_fields& in) {
    link_registers out;
    BANYAN_TRY(out.unit, in.text("unit", longest_unit));
    BANYAN_TRY(out.words, in.numbers<std::uint32_t>("words", most_registers));
    BANYAN_CHECK(in.may("branch", out.branch));
    return out;
}

/// -1: not known.
int small_number(const json_fields& in, const char* key, int most) {
    return static_cast<int>(std::clamp<std::int64_t>(in.integer(key).value_or(-1), -1, most));
}

precedence verdict_precedence(const kernel_fault& fault) {
    if (!fault.recovery) return precedence::alert;
    switch (static_cast<recovery>(*fault.recovery)) {
        case recovery::none:
            return precedence::note;
        case recovery::gpu_reset:
        case recovery::drain_and_reset:
            return precedence::reset;
        case recovery::node_reboot:
            return precedence::node_out;
        default:
            return precedence::alert;  // codes that nobody has seen are a person's business
    }
}

precedence symptom_precedence(std::uint32_t code) {
    const auto* row = catalog::find_symptom(code);
    if (!row) return precedence::alert;
    switch (row->asks) {
        case catalog::asks::nothing:
            return precedence::note;
        case catalog::asks::job:
            return precedence::app;
        case catalog::asks::look:
            return precedence::alert;
        case catalog::asks::drain:
            return precedence::reset;
    }
    return precedence::alert;
}

precedence link_precedence(const kernel_fault& fault) {
    switch (ruling_of(fault).action) {
        case catalog::link_action::ignore:
            return precedence::note;
        case catalog::link_action::verdict:
            return precedence::app;
        case catalog::link_action::reset_gpu:
            return precedence::reset;
        default:
            return precedence::alert;
    }
}

}  // namespace

catalog::link_ruling ruling_of(const kernel_fault& fault) {
    if (fault.kind != fault_kind::xid || !fault.registers) return {};
    const auto& r = *fault.registers;
    if (fault.code == 74) return catalog::rule_nvlink4(r.words);
    if (r.words.size() < 2) return {};
    return catalog::rule_nvlink5(fault.code, r.unit, r.words[0], r.words[1], r.branch);
}

std::string event::key() const { return fmt::format("{}\n{}\n{}\n{}", node, boot_id, stream, position); }

precedence precedence_of(const kernel_fault& fault) {
    if (fault.kind == fault_kind::bus_loss) return precedence::node_out;
    if (fault.kind == fault_kind::symptom) return symptom_precedence(fault.code);
    if (fault.kind == fault_kind::sxid) {
        if (fault.follow_up) return precedence::sympathetic;
        return fault.severity == link_severity::correctable || fault.severity == link_severity::nonfatal
                   ? precedence::note
                   : precedence::alert;
    }
    if (fault.code == 154) return verdict_precedence(fault);
    if (fault.caused_by) return precedence::sympathetic;
    const auto* row = catalog::find_xid(fault.code);
    if (!row) return precedence::alert;
    switch (row->bucket) {
        case catalog::bucket::cleanup:
            return precedence::sympathetic;
        case catalog::bucket::ignore:
        case catalog::bucket::advice:
            return precedence::note;
        case catalog::bucket::restart_app:
            return precedence::app;
        case catalog::bucket::reset_gpu:
        case catalog::bucket::ecc_double:
            return precedence::reset;
        case catalog::bucket::restart_node:
            return precedence::node_out;
        case catalog::bucket::nvlink:
            return link_precedence(fault);
        default:
            return precedence::alert;
    }
}

bool calls_for_seal(const kernel_fault& fault) {
    const auto w = precedence_of(fault);
    if (w == precedence::node_out || w == precedence::reset) return true;
    // Precursors: a row waits for remapping, an NVLink fails. The healthy peers have milliseconds left to be
    // saved.
    if (fault.kind != fault_kind::xid) return false;
    if (fault.code == 63) return true;
    const bool of_a_link = fault.code == 74 || (fault.code >= 144 && fault.code <= 150);
    return of_a_link && ruling_of(fault).action != catalog::link_action::ignore;
}

result<std::string> nvlink_domain_in(const json_fields& in) {
    if (!in.has("nvlink_domain")) return std::string();
    BANYAN_TRY(auto domain, in.text("nvlink_domain", max_device));
    if (!domain.empty() && !hardware::is_nvlink_domain(domain))
        return fail(errc::invalid_input, "an NVLink domain is not a UUID and a clique");
    return domain;
}

event by_the_clock_of_now(event e, std::int64_t clock_gap_ms) {
    constexpr std::int64_t reading_both = 1'000;
    const auto set_by = clock_gap_ms - e.clock_gap_ms;
    if (e.clock_gap_ms == 0 || std::abs(set_by) < reading_both) return e;
    e.line_ms = std::max<std::int64_t>(0, e.line_ms + set_by);
    e.clock_gap_ms = clock_gap_ms;
    return e;
}

json to_json(const event& e) {
    const auto& f = e.fault;
    json out = {{"node", e.node},
                {"boot", e.boot_id},
                {"stream", e.stream},
                {"position", e.position},
                {"line_ms", e.line_ms},
                {"gpu", e.gpu},
                {"uuid", e.uuid},
                {"text", e.text},
                {"repeats", e.repeats},
                {"kind", static_cast<unsigned>(f.kind)},
                {"code", f.code},
                {"bdf", f.bdf},
                {"severity", static_cast<unsigned>(f.severity)},
                {"follow_up", f.follow_up}};
    if (!e.serial.empty()) out["serial"] = e.serial;
    if (e.job != 0) out["job"] = e.job;
    if (e.place) out["place"] = to_json(*e.place);
    if (!e.nvlink_domain.empty()) out["nvlink_domain"] = e.nvlink_domain;
    if (f.caused_by) out["caused_by"] = *f.caused_by;
    if (f.recovery) out["recovery"] = *f.recovery;
    if (!f.device.empty()) out["device"] = f.device;
    if (!f.port.empty()) out["port"] = f.port;
    if (f.link) out["link"] = *f.link;
    if (f.registers)
        out["registers"] = {
            {"unit", f.registers->unit}, {"words", f.registers->words}, {"branch", f.registers->branch}};
    if (f.step) out["step"] = *f.step;
    if (f.gpu_instance) out["gpu_instance"] = *f.gpu_instance;
    return out;
}

result<event> event_from(const json& meta) {
    if (!meta.is_object()) return fail(errc::invalid_input, "an event is not an object");
    const json_fields in(meta);
    event e;
    BANYAN_TRY(e.node, in.text("node", max_name));
    BANYAN_TRY(e.boot_id, in.text("boot", max_name));
    BANYAN_TRY(e.stream, in.text("stream", max_name));
    BANYAN_TRY(e.position, in.number("position"));
    BANYAN_TRY(const auto kind, in.number("kind", 3));
    BANYAN_TRY(const auto code, in.number("code", UINT32_MAX));
    BANYAN_TRY(const auto severity, in.number("severity", 3));
    BANYAN_TRY(e.fault.bdf, in.text("bdf", 32));
    BANYAN_TRY(e.text, in.text("text", max_text));
    BANYAN_TRY(e.uuid, in.text("uuid", max_name));
    BANYAN_TRY(e.repeats, in.number("repeats"));
    BANYAN_TRY(const auto line_ms, in.number("line_ms", latest_ms));
    if (in.has("serial")) {
        BANYAN_TRY(e.serial, in.text("serial", max_name));
    }
    if (in.has("device")) {
        BANYAN_TRY(e.fault.device, in.text("device", max_device));
    }
    if (in.has("port")) {
        BANYAN_TRY(e.fault.port, in.text("port", max_device));
    }
    e.line_ms = static_cast<std::int64_t>(line_ms);
    e.gpu = small_number(in, "gpu", 1023);
    e.fault.kind = static_cast<fault_kind>(kind);
    e.fault.code = static_cast<std::uint32_t>(code);
    e.fault.severity = static_cast<link_severity>(severity);
    e.fault.follow_up = in.flag("follow_up").value_or(false);
    e.job = optional_number(in, "job").value_or(0);
    e.fault.caused_by = optional_number(in, "caused_by");
    e.fault.recovery = optional_number(in, "recovery");
    e.fault.step = optional_number(in, "step");
    e.fault.gpu_instance = optional_number(in, "gpu_instance");
    if (in.has("place")) {
        BANYAN_TRY(e.place, neighbours_from(*in.find("place")));
    }
    BANYAN_TRY(e.nvlink_domain, nvlink_domain_in(in));
    if (in.has("registers")) {
        BANYAN_TRY(const auto registers, in.object("registers"));
        BANYAN_TRY(e.fault.registers, registers_from(registers));
    }
    if (in.has("link")) e.fault.link = small_number(in, "link", 4095);
    return e;
}

}  // namespace banyan::fault
