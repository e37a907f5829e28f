// SPDX-License-Identifier: BSD-3-Clause
//
// The file of links that slurmctld keeps new jobs off, and how many of them a fabric can spare. Blocks: for
// the pool.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::topo {
struct fabric;
}

namespace banyan::fault {

/// The cable of an incident, by the ends that it names.
struct cable {
    std::uint64_t incident = 0;
    std::vector<end_point> ends;  ///< with a GUID and a port: one or two
};
cable cable_of(const incident& i);

/// How many links the fabric of the snapshot can spare. The file is read again when it is another one. Any
/// thread.
class spare_links {
  public:
    /// `percent`: of a switch's links.
    spare_links(std::string snapshot, std::uint32_t percent)
        : path_(std::move(snapshot)), percent_(percent) {}

    /// Whether `one` may be kept off beside `all`. not_found: no such link; exhausted: no more can be spared;
    /// anything else: the snapshot cannot be read.
    result<void> room(const std::vector<cable>& all, const cable& one);
    /// How often the file was read.
    std::uint64_t reads() const { return reads_; }

  private:
    using stamp = std::array<std::int64_t, 4>;  // device, inode, size, time
    result<std::shared_ptr<const topo::fabric>> read();

    std::string path_;
    std::uint32_t percent_;
    std::mutex guard_;
    std::shared_ptr<const topo::fabric> fabric_;
    stamp is_{};
    std::uint64_t reads_ = 0;
};

/// Replaces the file.
result<void> write_avoided(const std::string& path, const std::vector<cable>& all);
/// The links that it names, each with its incident; none where it is not there or makes no sense.
std::vector<cable> avoided_in(const std::string& path);

}  // namespace banyan::fault
