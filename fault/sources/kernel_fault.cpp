// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/kernel_fault.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.hpp"
#include "fault/sources/process_names.hpp"
#include "fault/sources/scan.hpp"
#include "fault/sources/symptom_lines.hpp"

namespace banyan::fault {
namespace {

using scan::drop;
using scan::take_hex_number;
using scan::take_number;

constexpr std::size_t max_message = 400, max_serial = 32;
constexpr std::size_t max_comm = 15;  // the kernel's task names have at most 15 characters

std::string bounded(std::string_view text) { return std::string(text.substr(0, max_message)); }

// A process name is free text that its owner chooses and may hold ", "; it has at most 15 characters. It ends
// at the last comma in reach after which a known message begins, else at the first one.
std::size_t end_of_name(std::string_view text) {
    static constexpr std::array<std::string_view, 23> starts{
        "Ch",   "GPU ", "Row ",  "Timeout", "Contained", "Uncontained", "NVLink", "Graphics",
        "MMU ", "chan", "pbdma", "DBE",     "RC ",       "Engine",      "RST",    "recovery",
        "SAW_", "RLW_", "TLW_",  "TREX",    "NVLPW",     "NETIR",       "MSE"};
    const auto first = text.find(", ");
    auto known = std::string_view::npos;
    for (auto at = first; at <= max_comm; at = text.find(", ", at + 1)) {  // npos is more
        const auto rest = text.substr(at + 2);
        if (std::ranges::any_of(starts, [&](auto s) { return rest.starts_with(s); })) known = at;
    }
    return known == std::string_view::npos ? first : known;
}

void take_process(std::string_view& rest, kernel_fault& out) {
    if (drop(rest, "pid=")) {
        const auto end = std::min(rest.find(", "), rest.size());
        out.pid = bounded(rest.substr(0, end));
        std::erase(out.pid, '\'');
        rest.remove_prefix(end);
        drop(rest, ", ");
    }
    if (drop(rest, "name=")) {
        const auto end = std::min(end_of_name(rest), rest.size());
        out.process = bounded(rest.substr(0, end));
        rest.remove_prefix(end);
        drop(rest, ", ");
    }
}

// "... caused by previous Xid N" is the end of the message, behind all that a process name could say.
std::optional<std::uint32_t> cause_of(std::string_view text) {
    constexpr std::string_view mark = " caused by previous Xid ";
    const auto at = text.rfind(mark);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + mark.size());
    const auto number = take_number(text);
    while (!text.empty() && (text.front() == ' ' || text.front() == '.')) text.remove_prefix(1);
    return text.empty() ? number : std::nullopt;
}

// "GPU recovery action changed from 0xN (words) to 0xN (words)": the words differ between branches. A process
// name stands before it and is too short for all of it, so the last one is the driver's.
std::optional<std::uint32_t> verdict_of(std::string_view text) {
    constexpr std::string_view mark = "from 0x";
    const auto at = text.rfind(mark);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + mark.size());
    if (!take_hex_number(text) || !drop(text, " (")) return {};
    const auto end = text.find(") to 0x");
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 7);
    return take_hex_number(text);
}

// "Link 12", "link -1": the last one, since a name stands before the driver's own words.
std::optional<int> link_in(std::string_view text) {
    std::optional<int> found;
    for (std::size_t at = 0; at + 5 < text.size(); ++at) {
        auto rest = text.substr(at);
        if (!drop(rest, "Link ") && !drop(rest, "link ")) continue;
        const bool minus = drop(rest, "-");
        if (const auto n = take_number(rest)) found = minus ? -1 : static_cast<int>(std::min(*n, 4095u));
    }
    return found;
}

bool speaks_of_links(std::uint32_t code) { return code == 74 || (code >= 144 && code <= 150); }

// After "Xid (": "[PCI:]bdf[.f][ GPU-I:NN][ GPU-CI:NN]): N[, ...]"
std::optional<kernel_fault> parse_xid(std::string_view rest) {
    kernel_fault out;
    drop(rest, "PCI:");
    auto place = take_bdf(rest);
    if (!place) return {};
    out.bdf = std::move(place->first);
    rest = place->second;
    if (drop(rest, " GPU-I:")) out.gpu_instance = take_number(rest);
    if (drop(rest, " GPU-CI:")) out.compute_instance = take_number(rest);
    if (!drop(rest, "): ")) return {};
    const auto code = take_number(rest);
    if (!code || *code == 0 || (!rest.empty() && rest.front() != ',' && rest.front() != ' ')) return {};
    out.code = *code;
    drop(rest, ",");
    drop(rest, " ");
    take_process(rest, out);
    out.message = bounded(rest);
    if (speaks_of_links(out.code)) {
        out.link = link_in(rest);
        out.registers = registers_in(out.code, rest);
    }
    if (out.code == 154) out.recovery = verdict_of(rest);
    out.caused_by = cause_of(rest);
    return out;
}

// After "SXid (": "PCI:bdf.f): N, [Fatal|Non-fatal|Correctable, ][Link NN ]text"; the number may also be
// followed by "Severity ..." or "Data {...}", which belong to the event before.
std::optional<kernel_fault> parse_sxid(std::string_view rest) {
    kernel_fault out;
    out.kind = fault_kind::sxid;
    drop(rest, "PCI:");
    auto place = take_bdf(rest);
    if (!place) return {};
    out.bdf = std::move(place->first);
    rest = place->second;
    if (!drop(rest, "): ")) return {};
    const auto code = take_number(rest);
    if (!code || !drop(rest, ",")) return {};
    out.code = *code;
    drop(rest, " ");
    out.follow_up = rest.starts_with("Severity ") || rest.starts_with("Data ");
    if (drop(rest, "Fatal, "))
        out.severity = link_severity::fatal;
    else if (drop(rest, "Non-fatal, "))
        out.severity = link_severity::nonfatal;
    else if (drop(rest, "Correctable, "))
        out.severity = link_severity::correctable;
    out.link = link_in(rest);
    out.message = bounded(rest);
    return out;
}

kernel_fault lost(std::string bdf, std::string_view text) {
    kernel_fault out;
    out.kind = fault_kind::bus_loss;
    out.code = 79;
    out.bdf = std::move(bdf);
    out.message = bounded(text);
    return out;
}

kernel_fault symptom_of(symptom_line&& found, std::string_view text) {
    kernel_fault out;
    out.kind = fault_kind::symptom;
    out.code = static_cast<std::uint32_t>(found.code);
    out.bdf = std::move(found.bdf);
    out.device = std::move(found.device);
    out.message = bounded(text);
    return out;
}

// What the driver says without a number, and without naming the card.
std::optional<kernel_fault> nameless(std::string_view rest) {
    using catalog::symptom;
    const auto say = [&](symptom code) { return symptom_of({code, "GPU driver", {}}, rest); };
    if (rest.starts_with("RmInitAdapter failed! (0x") ||
        rest.starts_with("rm_init_adapter failed for device bearing minor number "))
        return say(symptom::gpu_init);
    if (rest.starts_with("nvGpuOpsReportFatalError: uvm encountered global fatal error 0x"))
        return say(symptom::gpu_driver);
    if (rest.starts_with("The NVIDIA probe routine failed for ") ||
        rest.starts_with("None of the NVIDIA devices were initialized"))
        return say(symptom::gpu_count);
    return {};
}

}  // namespace

kernel_fault symptom_at(catalog::symptom code, std::string_view address, std::string_view name,
                        std::string message) {
    kernel_fault out;
    out.kind = fault_kind::symptom;
    out.code = static_cast<std::uint32_t>(code);
    if (auto place = take_bdf(address)) out.bdf = std::move(place->first);
    out.device = out.bdf.empty() ? printable(name) : out.bdf;
    out.message = std::move(message);
    return out;
}

bool begins_as_fault(std::string_view text) {
    if (may_begin_with_a_name(text)) return false;
    for (const std::string_view start : {"NVRM: Xid (", "NVRM: GPU ", "NVRM: The NVIDIA GPU ",
                                         "NVRM: (PCI ID: ", "NVRM: fallen off the bus", "nvidia-nvswitch"})
        if (text.starts_with(start)) return true;
    if (drop(text, "NVRM: ")) return nameless(text).has_value();
    return find_symptom_line(text).has_value();
}

kernel_parser::found kernel_parser::line(std::string_view text) {
    if (pending_lines_ > 0) --pending_lines_;
    if (may_begin_with_a_name(text) || is_cut_from_oom_line(text)) return {};
    const auto identified = std::exchange(identified_, {});
    auto rest = text;
    if (!identified.empty() && drop(rest, "NVRM: GPU Board Serial Number: "))
        return {{}, gpu_identity{identified, {}, printable(rest.substr(0, max_serial))}};
    if (drop(rest, "nvidia-nvswitch")) {
        if (!take_number(rest) || !drop(rest, ": SXid (")) return {};
        return {parse_sxid(rest), {}};
    }
    if (!drop(rest, "NVRM: ")) {
        auto symptom = find_symptom_line(text);
        if (!symptom) return {};
        return {symptom_of(std::move(*symptom), text), {}};
    }
    return driver_line(rest);
}

// After "NVRM: ".
kernel_parser::found kernel_parser::driver_line(std::string_view rest) {
    if (drop(rest, "Xid (")) {
        found out{parse_xid(rest), {}};
        if (out.fault && out.fault->registers) out.fault->registers->branch = branch_;
        return out;
    }
    if (drop(rest, "loading NVIDIA UNIX ")) {
        set_branch(driver_branch_in(rest).value_or(0));
        return {};
    }
    if (drop(rest, "GPU at PCI:")) {
        auto place = take_bdf(rest);
        if (!place || !drop(place->second, ": ") || !place->second.starts_with("GPU-")) return {};
        identified_ = place->first;
        return {{}, gpu_identity{std::move(place->first), bounded(place->second).substr(0, 64)}};
    }
    if (drop(rest, "GPU ")) {
        auto place = take_bdf(rest);
        if (!place) return {};
        auto& after = place->second;
        if (after.starts_with(": RmInitAdapter failed! (0x") ||
            after.starts_with(": rm_init_adapter failed")) {
            auto device = place->first;
            return {symptom_of({catalog::symptom::gpu_init, std::move(device), place->first}, rest), {}};
        }
        drop(after, ": GPU");
        if (after.starts_with(" has fallen off the bus")) return {lost(std::move(place->first), after), {}};
        return {};
    }
    if (auto fault = nameless(rest)) return {std::move(fault), {}};
    return lost_in_parts(rest);
}

// "The NVIDIA GPU 0000:5d:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus ...",
// broken into one line, two or three, each after "NVRM: "; branches break it before "(PCI ID", "installed"
// and "fallen". The first line alone also begins other messages.
kernel_parser::found kernel_parser::lost_in_parts(std::string_view rest) {
    constexpr std::string_view named = "installed in this system has", fallen = "fallen off the bus";
    const auto blank = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size())); };
    bool first = false;
    if (drop(rest, "The NVIDIA GPU ")) {
        auto place = take_bdf(rest);
        pending_lines_ = 0;
        if (!place) return {};
        pending_bdf_ = std::move(place->first);
        pending_lines_ = 4;
        pending_named_ = false;
        first = true;
        rest = place->second;
        blank();
        if (rest.empty()) return {};
    }
    if (pending_lines_ == 0) return {};
    bool fits = false;
    if (drop(rest, "(PCI ID: ") && scan::take_hex_number(rest) && drop(rest, ":") &&
        scan::take_hex_number(rest) && drop(rest, ")")) {
        pending_named_ = fits = true;
        blank();
    }
    if (pending_named_ && drop(rest, named)) {
        fits = true;
        blank();
    }
    if (first && !(fits && (rest.empty() || rest.starts_with(fallen)))) {
        pending_lines_ = 0;  // another message that begins so
        return {};
    }
    if (pending_named_ && rest.starts_with("fallen off the bus")) {
        pending_lines_ = 0;
        return {lost(std::move(pending_bdf_), rest), {}};
    }
    return {};
}

}  // namespace banyan::fault
