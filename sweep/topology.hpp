// SPDX-License-Identifier: BSD-3-Clause
//
// What hwloc sees of the machine, against what it saw of one that was well.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "sweep/finding.hpp"

namespace banyan::sweep {

/// An object's name, "PCI 0000:1b:00.0", and what it is, "10de:2330"; for memory in bytes.
struct machine_part {
    std::string is{};
    std::uint64_t bytes = 0;
};
using machine_parts = std::map<std::string, machine_part>;

constexpr std::size_t max_topology_bytes = std::size_t{16} << 20;

/// Missing and other parts make the node unfit; what it has beyond the baseline one is told. Memory may
/// differ by 2 %: firmware takes more or less of it.
finding judge_topology(const machine_parts& baseline, const machine_parts& here);

/// Of the machine that we run on; `xml` gets it as hwloc's XML.
result<machine_parts> look_at_machine(std::string* xml = nullptr);
/// Of a file that --write-topology, or lstopo, wrote. `name` is for messages.
result<machine_parts> read_topology(const std::string& xml, const std::string& name);

/// Looks and judges.
finding check_topology(const std::string& baseline);

}  // namespace banyan::sweep
