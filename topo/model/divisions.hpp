// SPDX-License-Identifier: BSD-3-Clause
//
// How a device divides the hosts that have it: by the leaves it leads to.
#pragma once

#include <cstdint>
#include <vector>

namespace banyan::topo::build {

using leaf_by_host = std::vector<std::uint32_t>;  ///< none where it has no link

/// Against another division: `coarser` joins what the other divides, `finer` divides what it joins, `across`
/// says nothing of it. A few crossed cables change nothing.
enum class divides : std::uint8_t { alike, coarser, finer, across };
divides compare_divisions(const leaf_by_host& a, const leaf_by_host& b);

}  // namespace banyan::topo::build
