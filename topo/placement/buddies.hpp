// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/work.hpp>

namespace banyan::topo {

/// Slot -> the slot that keeps a copy of its shards: another leaf group wherever the sizes allow, every slot
/// the buddy of exactly one, never itself (but for a single slot). Failure domains are left as far as `limit`
/// allows.
std::vector<std::uint32_t> choose_buddies(const fabric& f, std::span<const std::uint32_t> nodes, work& limit);

}  // namespace banyan::topo
