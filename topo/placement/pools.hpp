// SPDX-License-Identifier: BSD-3-Clause
//
// The free hosts by leaf group, and how many whole units each group gives.
#pragma once

#include <span>
#include <vector>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/tier.hpp>

namespace banyan::topo {

/// The free hosts of one leaf group, in the order in which they are taken.
struct pool {
    std::uint32_t number = 0;     ///< for a caller that reorders them
    location at;                  ///< of each of its hosts
    std::uint32_t preferred = 0;  ///< of its hosts
    std::span<const std::uint32_t> hosts;
    std::uint32_t size = 0;    ///< how many hosts
    std::uint32_t pieces = 0;  ///< whole pieces that it is to give
    std::size_t taken = 0;     ///< hosts handed out

    std::size_t left() const { return size - taken; }
    std::uint32_t take() { return hosts[taken++]; }
};

/// Pools, and the hosts that they look into. Moved, not copied.
struct free_pools {
    std::vector<std::uint32_t> hosts;
    std::vector<pool> pools;

    free_pools() = default;
    free_pools(free_pools&&) = default;
    free_pools& operator=(free_pools&&) = default;
};

/// 0 (sound) to 1; a host that lacks rails, or has a slow one, is not sound, whatever `risk` says. `risk` as
/// in candidates.
float risk_of(const fabric& f, std::span<const float> risk, std::uint32_t host);

/// Preferred hosts first, those with a high from.risk last. A host without a leaf group is near nobody: a
/// pool of its own.
free_pools make_pools(const fabric& f, const candidates& from);

/// Decides how many pieces of `piece` hosts each pool gives, at most `count` in all: the fewest spine groups
/// and leaf groups, evenly, and then the tightest fit, so that large blocks stay free. Returns how many
/// pieces fit nowhere whole. `spares` hosts beside the pieces are welcome, not required.
std::uint32_t share_out(std::vector<pool>& pools, std::uint32_t count, std::uint32_t piece,
                        std::uint32_t spares);

}  // namespace banyan::topo
