// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/kernel_fault.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;
using scan::take_hex_number;
using scan::take_number;

constexpr std::size_t max_message = 400;
constexpr std::size_t max_comm = 15;  // the kernel's task names have at most 15 characters

std::string bounded(std::string_view text) { return std::string(text.substr(0, max_message)); }

// A process name is free text and may hold ", ". It ends at the comma after which a known message begins,
// else at the first one; it cannot be longer than a task name.
std::size_t end_of_name(std::string_view text) {
    static constexpr std::array<std::string_view, 16> starts{
        "Ch",   "GPU ", "Row ",  "Timeout", "Contained", "Uncontained", "NVLink", "Graphics",
        "MMU ", "chan", "pbdma", "DBE",     "RC ",       "Engine",      "RST",    "recovery"};
    std::size_t first = std::string_view::npos;
    for (auto at = text.find(", "); at != std::string_view::npos && at <= max_comm;
         at = text.find(", ", at + 1)) {
        if (first == std::string_view::npos) first = at;
        const auto rest = text.substr(at + 2);
        if (std::ranges::any_of(starts, [&](auto s) { return rest.starts_with(s); })) return at;
    }
    return first == std::string_view::npos ? text.find(", ") : first;
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

std::optional<std::uint32_t> number_after(std::string_view text, std::string_view mark, bool hex) {
    const auto at = text.rfind(mark);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + mark.size());
    return hex ? take_hex_number(text) : take_number(text);
}

std::optional<int> link_in(std::string_view text) {
    for (const std::string_view mark : {"Link ", "link "}) {
        const auto at = text.find(mark);
        if (at == std::string_view::npos) continue;
        auto rest = text.substr(at + mark.size());
        const bool minus = drop(rest, "-");
        if (const auto n = take_number(rest)) return minus ? -1 : static_cast<int>(*n);
    }
    return {};
}

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
    out.link = link_in(rest);
    if (out.code == 154) out.recovery = number_after(rest, " to 0x", true);
    out.caused_by = number_after(rest, "caused by previous Xid ", false);
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

}  // namespace

std::optional<std::pair<std::string, std::string_view>> take_bdf(std::string_view text) {
    const auto hex = [&](std::size_t from) {
        std::size_t n = 0;
        while (from + n < text.size() && std::isxdigit(static_cast<unsigned char>(text[from + n]))) ++n;
        return n;
    };
    std::array<std::string_view, 3> part{};
    std::size_t at = 0, parts = 0;
    for (; parts < 3; ++parts) {
        const auto n = hex(at);
        if (n < 2 || n > 8) break;
        part[parts] = text.substr(at, n);
        at += n;
        if (parts < 2 && at < text.size() && text[at] == ':' && hex(at + 1) >= 2)
            ++at;
        else {
            ++parts;
            break;
        }
    }
    if (parts < 2) return {};
    std::string out = parts == 3 ? std::string(part[0]) : "0000";
    if (out.size() > 4) out.erase(0, std::min(out.find_first_not_of('0'), out.size() - 4));  // "00000000:86"
    if (out.size() < 4) out.insert(0, 4 - out.size(), '0');
    for (std::size_t i = parts == 3 ? 1 : 0; i < parts; ++i) {
        if (part[i].size() != 2) return {};
        (out += ':') += part[i];
    }
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    if (at + 1 < text.size() && text[at] == '.' && std::isdigit(static_cast<unsigned char>(text[at + 1])))
        at += 2;
    return std::pair{std::move(out), text.substr(at)};
}

kernel_parser::found kernel_parser::line(std::string_view text) {
    if (pending_lines_ > 0) --pending_lines_;
    if (const auto at = text.find("SXid ("); at != std::string_view::npos)
        return {parse_sxid(text.substr(at + 6)), {}};
    const auto nvrm = text.find("NVRM: ");
    if (nvrm == std::string_view::npos) return {};
    auto rest = text.substr(nvrm + 6);
    if (drop(rest, "Xid (")) return {parse_xid(rest), {}};
    if (drop(rest, "GPU at PCI:")) {
        auto place = take_bdf(rest);
        if (!place || !drop(place->second, ": ") || !place->second.starts_with("GPU-")) return {};
        return {{}, gpu_identity{std::move(place->first), bounded(place->second).substr(0, 64)}};
    }
    if (drop(rest, "The NVIDIA GPU ")) {
        if (auto place = take_bdf(rest)) pending_bdf_ = std::move(place->first), pending_lines_ = 3;
        return {};
    }
    if (drop(rest, "GPU ")) {
        auto place = take_bdf(rest);
        if (place && place->second.find("fallen off the bus") != std::string_view::npos)
            return {lost(std::move(place->first), place->second), {}};
        return {};
    }
    if (rest.starts_with("fallen off the bus") && pending_lines_ > 0) {
        pending_lines_ = 0;
        return {lost(std::move(pending_bdf_), rest), {}};
    }
    return {};
}

}  // namespace banyan::fault
