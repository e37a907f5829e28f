// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel's lines on everything but NVIDIA's GPUs and switches: HCAs, PCIe, memory, disks, file systems,
// the kernel itself. A line is taken from its first byte on; what a process's name may begin does not come
// here (process_names.hpp). Every form is fixed beyond the 15 bytes of such a name all the same. Names that
// users choose inside a line are skipped, never read. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fault/catalog/symptom.hpp"

namespace banyan::fault {

struct symptom_line {
    catalog::symptom code{};
    std::string device;  ///< what it speaks of: "0000:3b:00", "nvme0n1", "MC0", "CPU 3"; never empty
    std::string bdf;     ///< when it is a PCI device: as in kernel_fault
};
using maybe_symptom = std::optional<symptom_line>;

/// What reads one family of lines; each takes the whole text, of 16 bytes at least.
struct recogniser {
    std::string_view family;
    maybe_symptom (*read)(std::string_view text);
};
/// All there are: the tests that no user's text is taken for a fault go through them.
std::span<const recogniser> recognisers();

/// What a text of the kernel says, when it is one of these.
maybe_symptom find_symptom_line(std::string_view text);

namespace lines {
maybe_symptom hca(std::string_view text);
maybe_symptom pcie(std::string_view text);
maybe_symptom machine(std::string_view text);  ///< memory, processors, the kernel itself
maybe_symptom storage(std::string_view text);

/// A PCI device at the front ("0000:3b:00.0"), which is taken off: its normal form.
std::optional<std::string> take_device(std::string_view& text);
/// "kernel_name:123:(pid 0): " at the front is taken off, if it is there.
void drop_function(std::string_view& text);
}  // namespace lines

}  // namespace banyan::fault
