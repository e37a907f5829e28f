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

enum class opensm_kind : std::uint8_t { link_trap, removed, discovered, subnet_up, unlinked };

struct opensm_event {
    opensm_kind kind = opensm_kind::subnet_up;
    std::uint32_t lid = 0;          ///< link_trap: of the switch that sent it
    std::uint64_t guid = 0;         ///< removed, discovered: of the port; unlinked: of the local node
    std::string node;               ///< removed, discovered: the node description
    std::uint32_t port = 0;         ///< unlinked
    std::uint64_t remote_guid = 0;  ///< unlinked
    std::uint32_t remote_port = 0;
    std::string text;
};

class opensm_parser {
  public:
    /// One line in; at most one event out. Garbage gives none.
    std::optional<opensm_event> line(std::string_view text);

  private:
    std::optional<opensm_event> unlink_;  // waits for its continuation line
};

}  // namespace banyan::fault
