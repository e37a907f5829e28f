// SPDX-License-Identifier: BSD-3-Clause
//
// Machine checks, memory, and what the kernel says of itself. Linux: arch/x86/kernel/cpu/mce/core.c,
// drivers/edac/edac_mc.c, drivers/acpi/apei/ghes.c, mm/{memory-failure,oom_kill}.c,
// kernel/{watchdog,hung_task,panic,rcu/tree_stall.h}.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fault/sources/scan.hpp"
#include "fault/sources/symptom_lines.hpp"

namespace banyan::fault::lines {
namespace {

using catalog::symptom;
using scan::drop;
using scan::take_number;

maybe_symptom about(symptom code, std::string device) { return symptom_line{code, std::move(device), {}}; }

// "CPU 3: Machine Check Exception: 5 Bank 4: b200000000100402"; bit 61 of the bank's status: not corrected.
maybe_symptom machine_check(std::string_view text) {
    if (text.starts_with("Machine check events logged")) return about(symptom::cpu_corrected, "CPU");
    if (!drop(text, "CPU ")) return {};
    const auto cpu = take_number(text);
    if (!cpu) return {};
    const auto name = fmt::format("CPU {}", *cpu);
    if (drop(text, ": Machine Check Exception: ")) return about(symptom::cpu_uncorrected, name);
    if (!drop(text, ": Machine Check: ") || !take_number(text) || !drop(text, " Bank ") ||
        !take_number(text) || !drop(text, ": "))
        return {};
    const auto status = scan::take_hex_long(text);
    if (!status) return {};
    return about((*status >> 61 & 1) != 0 ? symptom::cpu_uncorrected : symptom::cpu_corrected, name);
}

// "EDAC MC0: 1 CE memory read error on DIMM0 (channel:0 slot:0 page:0x1f offset:0x0 ...)", or UE. The front
// has room in a process's name: what stands between it and "on" are a driver's plain words.
maybe_symptom edac(std::string_view text) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-/.,:#()";
    const auto controller = take_number(text);
    if (!controller || !drop(text, ": ") || !take_number(text)) return {};
    const bool corrected = drop(text, " CE ");
    if (!corrected && !drop(text, " UE ")) return {};
    const auto label = text.starts_with("on ") ? 0 : text.find(" on ");
    if (label >= 96 || text.find_first_not_of(plain) < label) return {};  // npos is more
    const auto place = text.find(" (", label);
    if (place == std::string_view::npos || text.find("page:0x", place) == std::string_view::npos) return {};
    return about(corrected ? symptom::memory_corrected : symptom::memory_uncorrected,
                 fmt::format("MC{}", *controller));
}

// "{12}[Hardware Error]: event severity: fatal"
maybe_symptom firmware(std::string_view text) {
    if (!take_number(text) || !drop(text, "}[Hardware Error]: event severity: ")) return {};
    if (text == "corrected" || text == "info") return about(symptom::firmware_corrected, "firmware");
    if (text == "recoverable") return about(symptom::firmware_recoverable, "firmware");
    if (text == "fatal") return about(symptom::firmware_fatal, "firmware");
    return {};
}

// "soft lockup - CPU#5 stuck for 22s! [name:pid]"
maybe_symptom lockup(std::string_view text) {
    if (drop(text, "BUG: soft lockup - CPU#")) {
        const auto cpu = take_number(text);
        return cpu && drop(text, " stuck for ") ? about(symptom::soft_lockup, fmt::format("CPU {}", *cpu))
                                                : std::nullopt;
    }
    if (drop(text, "Watchdog detected hard LOCKUP on cpu ")) {
        const auto cpu = take_number(text);
        return cpu ? about(symptom::hard_lockup, fmt::format("CPU {}", *cpu)) : std::nullopt;
    }
    return {};
}

// "task NAME:123 blocked for more than 120 seconds.": NAME is a user's, of at most 15 characters.
maybe_symptom hung(std::string_view text) {
    constexpr std::size_t longest_name = 15, most = longest_name + 12;
    for (const std::string_view mark : {" blocked for more than ", " blocked in I/O wait for more than "}) {
        const auto at = text.rfind(mark);
        if (at > most) continue;  // npos is more
        const auto colon = text.substr(0, at).rfind(':');
        if (colon > longest_name) continue;  // npos, too
        auto number = text.substr(colon + 1, at - colon - 1), rest = text.substr(at + mark.size());
        if (!scan::drop_digits(number, 1, 10) || !number.empty()) continue;
        if (take_number(rest) && rest.starts_with(" seconds")) return about(symptom::hung_task, "kernel");
    }
    return {};
}

// "Killed process 123 (NAME) total-vm:...", of older kernels "Kill process 123 (NAME) score 900 or ..."
bool killed(std::string_view text) {
    return (drop(text, "Killed process ") || drop(text, "Kill process ")) && take_number(text) &&
           text.starts_with(" (");
}

maybe_symptom stalled(std::string_view text) {
    const auto end = text.find(' ');
    if (end > 24) return {};  // npos is more
    text.remove_prefix(end);
    const bool stall = text.starts_with(" self-detected stall on CPU") ||
                       text.starts_with(" detected stalls on CPUs/tasks:") ||
                       text.starts_with(" detected expedited stalls on CPUs/tasks:");
    return stall ? about(symptom::stall, "kernel") : std::nullopt;
}

// "kernel BUG at fs/inode.c:123!"
bool is_bug(std::string_view text) {
    if (!text.ends_with('!')) return false;
    text.remove_suffix(1);
    const auto at = text.rfind(".c:");
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + 3);
    return take_number(text) && text.empty();
}

maybe_symptom of_kernel(std::string_view text) {
    if (drop(text, "INFO: task ")) return hung(text);
    if (drop(text, "watchdog: ") || drop(text, "NMI watchdog: ") ||
        text.starts_with("BUG: soft lockup - CPU#"))
        return lockup(text);
    if (drop(text, "rcu: INFO: ") || drop(text, "INFO: rcu")) return stalled(text);
    if (text.starts_with("Kernel panic - not syncing: ")) return about(symptom::panic, "kernel");
    if (text.starts_with("BUG: unable to handle ")) return about(symptom::oops, "kernel");
    if (drop(text, "kernel BUG at ") && is_bug(text)) return about(symptom::oops, "kernel");
    if (drop(text, "Memory cgroup out of memory: ") && killed(text))
        return about(symptom::out_of_memory_job, "job memory");
    if (drop(text, "Out of memory: ") && killed(text)) return about(symptom::out_of_memory_node, "memory");
    return {};
}

}  // namespace

maybe_symptom machine(std::string_view text) {
    switch (text.front()) {
        case 'm':
            if (drop(text, "mce: [Hardware Error]: ")) return machine_check(text);
            if (text.starts_with("mce: Uncorrected hardware memory error in user-access at "))
                return about(symptom::memory_uncorrected, "memory");
            return {};
        case 'E':
            return drop(text, "EDAC MC") ? edac(text) : std::nullopt;
        case '{':
            text.remove_prefix(1);
            return firmware(text);
        case 'M':
            if (drop(text, "Memory failure: 0x") && scan::take_hex_long(text) &&
                drop(text, ": recovery action for "))
                return about(symptom::memory_page, "memory");
            return of_kernel(text);
        case 'I':
        case 'w':
        case 'N':
        case 'r':
        case 'K':
        case 'B':
        case 'k':
        case 'O':
            return of_kernel(text);
        default:
            return {};
    }
}

}  // namespace banyan::fault::lines
