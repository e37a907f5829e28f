// SPDX-License-Identifier: BSD-3-Clause
//
// A job runs at the speed of its slowest node, so its nodes are to be equal.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/placement.hpp>

namespace banyan::topo {

/// What two hosts of a job have to have in common, wherever they are on the fabric. The better one is less.
struct host_kind {
    double gbps = 0;          ///< of all its rails at the rate of the slowest; 0 = not told
    std::uint16_t rails = 0;  ///< with a link
    bool nvlink = false;      ///< to other hosts
    std::uint32_t given = 0;  ///< candidates::kind

    bool operator==(const host_kind&) const = default;
    std::partial_ordering operator<=>(const host_kind& o) const;
};
host_kind kind_of(const fabric& f, std::span<const std::uint32_t> given, std::uint32_t host);

/// Of from.free those that a job of so many nodes is placed on, ascending: of one kind, the best that
/// suffices without hosts that are at risk (from.risk, as risk_of has it), or else with them; where no kind
/// suffices, the best kinds together. On one island where one holds the job. A kind with more of the
/// preferred hosts is better.
std::vector<std::uint32_t> equal_hosts(const fabric& f, const candidates& from, std::size_t needed);

}  // namespace banyan::topo
