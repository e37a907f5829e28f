// SPDX-License-Identifier: BSD-3-Clause
//
// The registers that the driver's lines on NVLinks print (Xids 74 and 144 to 150), and the driver's branch,
// which says how they are laid out. Strict: a line that is cut or damaged has none. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::fault {

struct link_registers {
    std::string unit;                  ///< "NETIR_LINK_EVT"; Xid 74 has none
    std::vector<std::uint32_t> words;  ///< 74: seven; else INFO, STATUS and what follows
    std::uint32_t branch = 0;          ///< of the driver that printed them, such as 570; 0: not known
};

inline constexpr std::size_t most_registers = 16, longest_unit = 32;

/// `message`: what follows the process's name.
std::optional<link_registers> registers_in(std::uint32_t xid, std::string_view message);

/// "... Kernel Module  570.158.01  ...", as the driver says when it is loaded and in
/// /proc/driver/nvidia/version: 570.
std::optional<std::uint32_t> driver_branch_in(std::string_view text);

}  // namespace banyan::fault
