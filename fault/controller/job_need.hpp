// SPDX-License-Identifier: BSD-3-Clause
//
// How many nodes a job needs to go on, from the line that banyan wrote into its AdminComment.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace banyan::fault {

/// Nodes without spares; nothing for a job that banyan did not place.
std::optional<std::uint32_t> nodes_needed(std::string_view admin_comment);

}  // namespace banyan::fault
