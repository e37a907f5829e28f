// SPDX-License-Identifier: BSD-3-Clause
//
// Missing links are laid to the one switch that explains most of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo::build {

/// Links that a pair of switches lacks.
struct gap {
    std::uint32_t low, high, missing;
};

/// Lays gaps to switches, the one that explains most first; a lower one where both do, since one leaf's
/// cables fail more easily.
class culprits {
  public:
    culprits(std::size_t switches, const std::vector<gap>& gaps);

    struct culprit {
        std::uint32_t sw = none;
        bool upper = false;
        std::vector<gap> gaps;
    };
    /// None when all are explained.
    std::optional<culprit> next();

  private:
    using by_switch = std::map<std::uint32_t, std::vector<std::size_t>>;
    std::uint32_t most(const by_switch& all) const;

    const std::vector<gap>& gaps_;
    std::vector<bool> explained_;
    by_switch of_low_, of_high_;
    std::vector<std::size_t> left_;  ///< by switch: gaps that nothing explains yet
};

}  // namespace banyan::topo::build
