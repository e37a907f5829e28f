// SPDX-License-Identifier: BSD-3-Clause
//
// A fabric in several parts: islands, and which of them lines join.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo {

bool has_islands(const fabric& f);

/// Hosts by what joins them (reach_of_hosts), the fewest first. One of which nobody knows may be in any of
/// them, and is in each.
std::vector<std::vector<std::uint32_t>> joined_parts(const fabric& f, std::span<const std::uint32_t> hosts);

}  // namespace banyan::topo
