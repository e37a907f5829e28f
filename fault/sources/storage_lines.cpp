// SPDX-License-Identifier: BSD-3-Clause
//
// Disks and file systems. Linux: drivers/nvme/host/{pci,core}.c, block/blk-core.c, fs/buffer.c,
// fs/ext4/super.c, fs/jbd2/journal.c, fs/xfs/xfs_{message,fsops}.c, fs/btrfs/{super,messages}.c; Lustre's
// ptlrpc/import.c.
//
// A container's image is a file system of a user's own, damaged if he wants it so: what lies on a loop device
// says nothing about the node, and what lies behind the device mapper may be such an image, too: a person
// looks.
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

constexpr std::string_view name_letters = "abcdefghijklmnopqrstuvwxyz0123456789-";

// "nvme0n1p2", "sda1", "md127", "dm-3", "vda": a disk of the node, which is taken off.
std::optional<std::string> take_disk(std::string_view& text) {
    const auto n = std::min(text.find_first_not_of(name_letters), text.size());
    const auto name = text.substr(0, n);
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto begins = [&](std::string_view kind) {
        return name.starts_with(kind) && name.size() > kind.size() && name.size() <= 31;
    };
    const bool known = (begins("nvme") && digit(name[4])) || begins("sd") || begins("vd") ||
                       (begins("md") && digit(name[2])) || (begins("dm-") && digit(name[3]));
    if (!known) return {};
    text.remove_prefix(n);
    return std::string(name);
}

// The device that a partition or a journal lies on: "nvme0n1p2" and "nvme0n1p2-8" are nvme0's.
std::string disk_of(std::string name) {
    if (name.starts_with("dm-")) return name;
    name.resize(std::min(name.find('-'), name.size()));
    for (const std::string_view kind : {"nvme", "md"})
        if (name.starts_with(kind)) {
            name.resize(std::min(name.find_first_not_of("0123456789", kind.size()), name.size()));
            return name;
        }
    if (const auto last = name.find_last_not_of("0123456789"); last != std::string::npos)
        name.resize(last + 1);
    return name;
}

maybe_symptom on(symptom code, std::string name) {
    if (code == symptom::file_system_readonly && name.starts_with("dm-")) code = symptom::file_system_error;
    return symptom_line{code, disk_of(std::move(name)), {}};
}

void drop_in_brackets(std::string_view& text) {
    auto rest = text;
    if (drop(rest, "(") && scan::take_until(rest, ") ", 40)) text = rest;
}

// "[tag ]123 [(3080) ][opcode 0x1 (Write) ]QID 4 timeout, aborting"
bool command_is_late(std::string_view text) {
    drop(text, "tag ");
    if (!take_number(text) || !drop(text, " ")) return false;
    drop_in_brackets(text);
    if (drop(text, "opcode 0x")) {
        if (!scan::take_hex_number(text) || !drop(text, " ")) return false;
        drop_in_brackets(text);
    }
    return drop(text, "QID ") && take_number(text) && text.starts_with(" timeout, ");
}

// "nvme0: I/O 832 QID 3 timeout, aborting", and the controller's end
maybe_symptom nvme(std::string_view text) {
    const auto name = take_disk(text);
    if (!name || !drop(text, ": ")) return {};
    if (drop(text, "I/O ")) {
        return command_is_late(text) ? on(symptom::disk_timeout, *name) : std::nullopt;
    }
    if (text.starts_with("controller is down; will reset: CSTS=0x")) return on(symptom::disk_timeout, *name);
    for (const std::string_view end : {"Removing after probe failure", "Disabling device after reset failure",
                                       "Device not ready; aborting "})
        if (text.starts_with(end)) return on(symptom::disk_lost, *name);
    return {};
}

// "[blk_update_request: ]I/O error, dev sda, sector 123 ..."; the words before ", dev" differ
maybe_symptom block(std::string_view text) {
    drop(text, "blk_update_request: ");
    drop(text, "print_req_error: ");
    for (const std::string_view what : {"I/O error, dev ", "critical medium error, dev ",
                                        "critical target error, dev ", "protection error, dev "}) {
        if (!drop(text, what)) continue;
        const auto name = take_disk(text);
        return name && text.starts_with(", sector ") ? on(symptom::disk_error, *name) : std::nullopt;
    }
    if (drop(text, "Buffer I/O error on dev ") || drop(text, "Buffer I/O error on device ")) {
        const auto name = take_disk(text);
        return name && text.starts_with(", logical block ") ? on(symptom::disk_error, *name) : std::nullopt;
    }
    return {};
}

maybe_symptom ext4(std::string_view text) {
    if (drop(text, " error (device ")) {
        const auto name = take_disk(text);
        return name && drop(text, "): ") ? on(symptom::file_system_error, *name) : std::nullopt;
    }
    if (!drop(text, " (")) return {};
    const auto name = take_disk(text);
    if (!name || !drop(text, "): ")) return {};
    return text.starts_with("Remounting filesystem read-only") ? on(symptom::file_system_readonly, *name)
                                                               : std::nullopt;
}

maybe_symptom xfs(std::string_view text) {
    const auto name = take_disk(text);
    if (!name || !drop(text, "): ")) return {};
    for (const std::string_view end :
         {"Filesystem has been shut down due to ", "log I/O error", "Log I/O Error",
          "I/O Error Detected. Shutting "
          "down filesystem",
          "Metadata I/O Error (0x"})
        if (text.starts_with(end)) return on(symptom::file_system_readonly, *name);
    for (const std::string_view bad :
         {"Corruption detected", "Metadata corruption detected", "metadata I/O error in ",
          "Metadata CRC error", "Internal error ", "Corruption of in-memory data"})
        if (text.starts_with(bad)) return on(symptom::file_system_error, *name);
    return {};
}

// "BTRFS error (device sda2): ...", "BTRFS: error (device sda2) in ...", "BTRFS info (device sda2): forced
// readonly"; "state E" may follow the device.
maybe_symptom btrfs(std::string_view text) {
    drop(text, ":");
    const bool error = drop(text, " error (device ") || drop(text, " critical (device ");
    if (!error && !drop(text, " info (device ")) return {};
    const auto name = take_disk(text);
    if (!name) return {};
    if (drop(text, " state ")) text.remove_prefix(std::min(text.find(')'), text.size()));
    if (!drop(text, ")")) return {};
    if (text == ": forced readonly") return on(symptom::file_system_readonly, *name);
    return error ? on(symptom::file_system_error, *name) : std::nullopt;
}

// "nfs: server NAME not responding, still trying"
maybe_symptom nfs(std::string_view text) {
    const auto end = text.find(' ');
    if (end == 0 || end == std::string_view::npos || end > 255 ||
        !text.substr(end).starts_with(" not responding, "))
        return {};
    return symptom_line{symptom::file_system_server, "NFS", {}};
}

// "LustreError: 167-0: NAME: This client was evicted by NAME; in progress operations ..."
maybe_symptom lustre(std::string_view text) {
    if (!take_number(text) || !drop(text, "-") || !scan::take_hex_number(text) || !drop(text, ": "))
        return {};
    const auto at = text.find(": This client was evicted by ");
    if (at > 128) return {};  // npos is more
    return symptom_line{symptom::file_system_error, "Lustre", {}};
}

}  // namespace

maybe_symptom storage(std::string_view text) {
    switch (text.front()) {
        case 'n':
            if (drop(text, "nvme ")) return nvme(text);
            return drop(text, "nfs: server ") ? nfs(text) : std::nullopt;
        case 'E':
            return drop(text, "EXT4-fs") ? ext4(text) : std::nullopt;
        case 'X':
            return drop(text, "XFS (") ? xfs(text) : std::nullopt;
        case 'A': {
            if (!drop(text, "Aborting journal on device ")) return {};
            const auto name = take_disk(text);
            return name && text.starts_with(".") ? on(symptom::file_system_readonly, *name) : std::nullopt;
        }
        case 'L':
            return drop(text, "LustreError: ") ? lustre(text) : std::nullopt;
        case 'B':
            if (drop(text, "BTRFS")) return btrfs(text);
            return block(text);
        case 'I':
        case 'b':
        case 'c':
        case 'p':
            return block(text);
        default:
            return {};
    }
}

}  // namespace banyan::fault::lines
