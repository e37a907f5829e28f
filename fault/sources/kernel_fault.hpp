// SPDX-License-Identifier: BSD-3-Clause
//
// One fault as the kernel log tells it: the grammar of the GPU driver's Xid lines, of NVSwitch SXid lines,
// of "fallen off the bus" without a number, and whatever symptom_lines.hpp reads. Everything but the number
// is optional, since branches and modes (MIG) differ. A message is taken from the text's first byte on, never
// looked for inside it, since the kernel prints names that users choose. Pure: text in, fault out; no clock,
// no files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fault/catalog/symptom.hpp"
#include "fault/sources/link_lines.hpp"

namespace banyan::fault {

enum class fault_kind : std::uint8_t { xid, sxid, bus_loss, symptom };
enum class link_severity : std::uint8_t { none, correctable, nonfatal, fatal };

struct kernel_fault {
    fault_kind kind = fault_kind::xid;
    std::uint32_t code = 0;  ///< Xid or SXid number; 79 for a loss of the bus that came without one; a
                             ///< symptom's of the catalogue
    std::string bdf;         ///< "0000:5d:00", lower case, without function; empty for what has none
    std::string device;      ///< of a symptom: see symptom_lines.hpp
    std::string port;        ///< "mlx5_0 1": where an HCA itself tells of it
    std::optional<std::uint32_t> gpu_instance, compute_instance;  ///< MIG
    std::string pid, process;                                     ///< as printed; empty when absent
    std::optional<std::uint32_t> caused_by;                       ///< 45: "caused by previous Xid N"
    std::optional<std::uint32_t> recovery;                        ///< 154: the new action's number
    std::optional<int> link;
    std::optional<link_registers> registers;       ///< of an NVLink; none where the line is not whole
    link_severity severity = link_severity::none;  ///< SXid
    bool follow_up = false;                        ///< SXid: a Severity or Data line of the event before it
    std::optional<std::uint32_t> step;             ///< of a job whose task ended
    std::string message;
};

/// "GPU at PCI:0000:5d:00: GPU-<uuid>", and after it "GPU Board Serial Number: <number>": not a fault, but
/// tells which card sits where.
struct gpu_identity {
    std::string bdf, uuid;  ///< the UUID is empty where the next line tells the serial number
    std::string serial{};   ///< of the board
};

/// What is known of a device by other means, named as the kernel's lines name it, so that both speak of one.
/// `address`: on the PCI bus, "0000:3b:00.0"; a simulated device has none, but a name.
kernel_fault symptom_at(catalog::symptom code, std::string_view address, std::string_view name,
                        std::string message);

/// The text begins as one of the driver's messages on faults does (also one that turns out to be damaged).
bool begins_as_fault(std::string_view text);

/// Keeps what a message that spans several lines needs; one per log. Feed every text that the
/// kernel said (kernel_log.hpp), in order.
class kernel_parser {
  public:
    struct found {
        std::optional<kernel_fault> fault;
        std::optional<gpu_identity> identity;
    };
    found line(std::string_view text);
    /// Of the driver whose lines come next, such as 570; 0: not known. It says so itself when it is loaded.
    void set_branch(std::uint32_t branch) { branch_ = branch; }
    std::uint32_t branch() const { return branch_; }

  private:
    found driver_line(std::string_view rest);
    found lost_in_parts(std::string_view rest);

    std::uint32_t branch_ = 0;
    std::string identified_;      // the card of the line before, whose serial number may follow
    std::string pending_bdf_;     // of "The NVIDIA GPU <bdf>", waiting for "fallen off the bus"
    int pending_lines_ = 0;       // texts left until it is forgotten
    bool pending_named_ = false;  // the card's PCI ID was seen
};

/// A text that begins with "5d:00", "0000:5d:00" or "0000:5d:00.0": the normal form and what follows it.
std::optional<std::pair<std::string, std::string_view>> take_bdf(std::string_view text);

}  // namespace banyan::fault
