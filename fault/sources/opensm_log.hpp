// SPDX-License-Identifier: BSD-3-Clause
//
// The subnet manager's log: records "Mon DD HH:MM:SS uuuuuu [TID] 0xLL -> text", continued by lines that
// begin with a TAB. Only what tells of a change is picked out. The log has neither year nor zone, so its
// stamps are not used: the reader's clock is. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace banyan::fault {

enum class opensm_kind : std::uint8_t {
    link_trap,
    removed,
    discovered,
    subnet_up,
    unlinked,
    port_down,  ///< NVIDIA's opensm only, which names the port
    port_up,
    manager_ends,   ///< "Exiting SM": the process ends by itself
    manager_state,  ///< "Entering MASTER state", DISCOVERING, STANDBY
};

struct opensm_event {
    opensm_kind kind = opensm_kind::subnet_up;
    std::uint32_t lid = 0;  ///< link_trap: of the switch that sent it
    /// removed, discovered: of the port; unlinked: of the local node; port_down, port_up: of the switch
    std::uint64_t guid = 0;
    std::string node;               ///< removed, discovered, port_down, port_up: the node description
    std::uint32_t port = 0;         ///< unlinked, port_down, port_up
    std::uint64_t remote_guid = 0;  ///< unlinked
    std::uint32_t remote_port = 0;
    std::string text;
};

class opensm_parser {
  public:
    /// One line in; at most one event out. Garbage gives none.
    std::optional<opensm_event> line(std::string_view text);
    /// The line begins as a record of this log does.
    static bool has_head(std::string_view line);

  private:
    std::optional<opensm_event> unlink_;  // waits for its continuation line
};

}  // namespace banyan::fault
