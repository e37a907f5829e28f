// SPDX-License-Identifier: BSD-3-Clause
//
// mlx5 and PCIe error reporting. Linux: drivers/net/ethernet/mellanox/mlx5/core/{health,events,cmd}.c,
// drivers/pci/pcie/{aer,dpc,err}.c, drivers/pci/hotplug/pciehp_ctrl.c.
#include <algorithm>
#include <array>

#include "fault/sources/kernel_fault.hpp"
#include "fault/sources/scan.hpp"
#include "fault/sources/symptom_lines.hpp"

namespace banyan::fault::lines {
namespace {

using catalog::symptom;
using scan::drop;
using scan::take_number;

constexpr std::string_view word_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

// A name of the kernel's: letters, digits, '_' and '-'.
std::string_view take_word(std::string_view& text, std::size_t most) {
    const auto n = std::min(text.find_first_not_of(word_letters), text.size());
    if (n > most) return {};
    const auto word = text.substr(0, n);
    text.remove_prefix(n);
    return word;
}

// What health.c says: the miss count, the syndrome, and that recovery failed.
std::optional<symptom> health_of(std::string_view text) {
    for (const std::string_view sign :
         {"device's health compromised - reached miss count", "handling bad device here",
          "health recovery flow aborted", "health recovery failed", "Fatal error detected",
          "PCI slot is unavailable", "new health works are not permitted at this stage",
          "unrecoverable hardware error"})
        if (text.starts_with(sign)) return symptom::hca_health;
    auto rest = text;
    // "Health issue observed, firmware internal error, severity(3) ERROR:": 4 and more are warnings and less.
    if (drop(rest, "Health issue observed, ")) {
        const auto at = rest.rfind(", severity(");
        if (at == std::string_view::npos) return symptom::hca_health;
        const bool hot = rest.starts_with("High temperature") || rest.starts_with("High Temperature");
        rest.remove_prefix(at + 11);
        const auto level = take_number(rest);
        if (hot || (level && *level >= 4)) return symptom::hca_temperature;
        return symptom::hca_health;
    }
    // "synd 0x8: unrecoverable hardware error", of older kernels; 0 is none, 0x10 high temperature.
    if (drop(rest, "synd 0x")) {
        const auto code = scan::take_hex_number(rest);
        if (!code || *code == 0 || !drop(rest, ": ")) return {};
        return *code == 0x10 ? symptom::hca_temperature : symptom::hca_health;
    }
    return {};
}

std::optional<symptom> event_of(std::string_view text) {
    if (drop(text, "Port module event[error]: module ")) {
        if (!take_number(text) || !drop(text, ", ")) return {};
        return text.ends_with("High Temperature") ? symptom::hca_temperature : symptom::hca_module;
    }
    if (drop(text, "Port module event: module ")) {
        if (!take_number(text)) return {};
        return text == ", Cable unplugged" ? std::optional(symptom::hca_cable) : std::nullopt;
    }
    if (text.starts_with("Detected insufficient power on the PCIe slot (")) return symptom::hca_power;
    if (text.starts_with("High temperature on sensors with bit set ")) return symptom::hca_temperature;
    // "ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource". ACCESS_REG is asked for by tools,
    // and not known to every card.
    const auto name = take_word(text, 64);
    if (!name.empty() && name != "ACCESS_REG" && drop(text, "(0x") && scan::take_hex_number(text) &&
        text.starts_with(") timeout. Will cause a leak of a command resource"))
        return symptom::hca_command;
    return {};
}

// "mlx5_0: Port: 1 Link DOWN", "ens1f0np0: Link down", "ens1: TX timeout detected"; mlx5_0 may stand without
// its colon.
std::optional<symptom> port_of(std::string_view text) {
    if (take_word(text, 15).empty()) return {};
    drop(text, ":");
    if (!drop(text, " ")) return {};
    if (text == "Link down") return symptom::hca_port_down;
    if (text.starts_with("TX timeout detected")) return symptom::hca_transmit;
    if (drop(text, "Port: ") && take_number(text) && text == " Link DOWN") return symptom::hca_port_down;
    return {};
}

// "NETDEV WATCHDOG: ens1 (mlx5_core): transmit queue 3 timed out": an interface's name holds no blank.
maybe_symptom watchdog(std::string_view text) {
    if (!drop(text, "NETDEV WATCHDOG: ")) return {};
    const auto end = text.find(' ');
    if (end > 15 || !text.substr(end).starts_with(" (mlx5_core): transmit queue ")) return {};
    return symptom_line{symptom::hca_transmit, std::string(text.substr(0, end)), {}};
}

symptom_line at_device(symptom code, std::string device) { return {code, device, device}; }

std::optional<symptom> severity_word(std::string_view text) {
    if (text.starts_with("Corrected") || text.starts_with("Correctable")) return symptom::pcie_corrected;
    if (!drop(text, "Uncorrected (") && !drop(text, "Uncorrectable (")) return {};
    if (text.starts_with("Fatal)")) return symptom::pcie_fatal;
    return text.starts_with("Non-Fatal)") ? std::optional(symptom::pcie_nonfatal) : std::nullopt;
}

// "[Multiple ]Corrected error received: 0000:02:00.0", or with "message received from"; the device reports
// for the one that is named.
maybe_symptom reported(std::string_view text, std::string device) {
    drop(text, "Multiple ");
    const auto code = severity_word(text);
    if (!code) return {};
    for (const std::string_view mark : {" error received: ", " error message received from "}) {
        const auto at = text.find(mark);
        if (at > 32) continue;  // npos is more
        text.remove_prefix(at + mark.size());
        if (text.starts_with("id=")) return at_device(*code, std::move(device));
        auto named = take_device(text);
        if (!named) return {};
        return at_device(*code, std::move(*named));
    }
    return {};
}

}  // namespace

std::optional<std::string> take_device(std::string_view& text) {
    // With its function: what has none is not how the PCI core prints a device.
    const auto end = text.find('.');
    if (end > 16) return {};  // npos is more
    auto place = take_bdf(text);
    if (!place || place->second.data() != text.data() + end + 2) return {};
    text = place->second;
    return std::move(place->first);
}

void drop_function(std::string_view& text) {
    auto rest = text;
    if (take_word(rest, 64).empty() || !drop(rest, ":") || !take_number(rest) || !drop(rest, ":")) return;
    if (drop(rest, "(pid ") && (!take_number(rest) || !drop(rest, "):"))) return;
    if (drop(rest, " ")) text = rest;
}

maybe_symptom hca(std::string_view text) {
    if (text.starts_with("NETDEV ")) return watchdog(text);
    if (!drop(text, "mlx5_core ")) return {};
    auto device = take_device(text);
    if (!device) return {};
    if (drop(text, " ")) {
        if (const auto code = port_of(text)) return at_device(*code, std::move(*device));
        return {};
    }
    if (!drop(text, ": ")) return {};
    drop_function(text);
    auto code = health_of(text);
    if (!code) code = event_of(text);
    if (!code) code = port_of(text);
    if (code) return at_device(*code, std::move(*device));
    // AER prints with the name of the driver that has the device.
    if (drop(text, "AER: ") || text.starts_with("PCIe Bus Error: ")) {
        if (drop(text, "PCIe Bus Error: severity="))
            if (const auto severity = severity_word(text)) return at_device(*severity, std::move(*device));
    }
    return {};
}

maybe_symptom pcie(std::string_view text) {
    const auto driver = take_word(text, 32);
    if (driver.empty() || !drop(text, " ")) return {};
    auto device = take_device(text);
    if (!device || !drop(text, ": ")) return {};
    const bool reporting = drop(text, "AER: ");
    if (drop(text, "PCIe Bus Error: severity=")) {
        const auto code = severity_word(text);
        return code ? maybe_symptom(at_device(*code, std::move(*device))) : std::nullopt;
    }
    if (reporting && text.starts_with("device recovery failed"))
        return at_device(symptom::pcie_lost, std::move(*device));
    if (driver != "pcieport") return {};
    if (reporting) return reported(text, std::move(*device));
    if (text.starts_with("DPC: containment event, status:0x"))
        return at_device(symptom::pcie_lost, std::move(*device));
    if (drop(text, "pciehp: Slot(") && take_word(text, 16).size() > 0 &&
        (text == "): Link Down" || text == "): Card not present"))
        return at_device(symptom::pcie_slot, std::move(*device));
    return {};
}

}  // namespace banyan::fault::lines
