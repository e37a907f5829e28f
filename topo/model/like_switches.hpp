// SPDX-License-Identifier: BSD-3-Clause
//
// Which switches may be compared: those with hosts of one kind below them. A site gives the leaf of its
// storage or its service hosts fewer cables on purpose.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/model/build.hpp"
#include "topo/model/mesh.hpp"

namespace banyan::topo::build {

class like_switches {
  public:
    explicit like_switches(const state& s);
    /// Learns of what kind the uppers are, from their lowers.
    void climb(const mesh& m);
    /// Whether a host that computes is below it.
    bool computes(std::uint32_t sw) const { return kind_[sw] < aside; }
    /// Whether it may have been built with fewer cables than those that it is compared with.
    bool may_have_fewer(std::uint32_t sw) const { return kind_[sw] == aside || alone_[sw]; }
    /// Lists of those that are alike: by how most hosts below them are called; without those that have no
    /// host. A leaf whose name for hosts no other has goes with most.
    std::vector<std::vector<std::uint32_t>> divide(const std::vector<std::uint32_t>& lowers) const;

  private:
    static constexpr std::uint32_t nobody = none, aside = none - 1;
    std::vector<std::uint32_t> kind_;  ///< by switch; `aside` where only hosts are that do not compute
    std::vector<bool> alone_;          ///< by leaf: none other has such hosts
};

}  // namespace banyan::topo::build
