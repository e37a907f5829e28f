// SPDX-License-Identifier: BSD-3-Clause
//
// The file of links that slurmctld keeps new jobs off, and how many of them a fabric can spare. Blocks: for
// the pool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

/// The cable of an incident, by the ends that it names.
struct cable {
    std::uint64_t incident = 0;
    std::vector<end_point> ends;  ///< with a GUID and a port: one or two
};
cable cable_of(const incident& i);

/// Whether `one` may be kept off beside `all`, by the snapshot and `percent` of a switch's links. not_found:
/// no such link; exhausted: no more can be spared; anything else: the snapshot cannot be read.
result<void> can_spare(const std::string& snapshot, const std::vector<cable>& all, const cable& one,
                       std::uint32_t percent);

/// Replaces the file.
result<void> write_avoided(const std::string& path, const std::vector<cable>& all);
/// The incidents that it names; none where it is not there or makes no sense.
std::vector<std::uint64_t> incidents_in(const std::string& path);

}  // namespace banyan::fault
