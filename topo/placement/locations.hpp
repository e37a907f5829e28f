// SPDX-License-Identifier: BSD-3-Clause
//
// Where the slots of a placed job meet: pair by pair, and for a group in which everybody sends to everybody,
// by how many of it are where.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/tier.hpp>

namespace banyan::topo {

class slot_locations {
  public:
    /// `nodes`: slot -> host index; one that is not on the fabric is far from everybody.
    slot_locations(const fabric& f, std::span<const std::uint32_t> nodes);

    std::uint32_t slots() const { return static_cast<std::uint32_t>(at_.size()); }
    const location& operator[](std::uint32_t slot) const { return at_[slot]; }
    tier between(std::uint32_t a, std::uint32_t b) const {
        return a == b ? tier::host : tier_between(at_[a], at_[b]);
    }

  private:
    std::vector<location> at_;
};

/// The pairs of one group at a time, by tier. Cost: O(members), whatever the pairs.
class pair_histogram {
  public:
    explicit pair_histogram(const slot_locations& at);

    void add(std::uint32_t slot, std::uint64_t members);
    /// Ordered pairs of members by the tier where they meet.
    by_tier<std::uint64_t> pairs() const;
    /// Members that a member on `slot` meets above the leaf.
    std::uint64_t above_leaf(std::uint32_t slot) const;
    /// For the next group.
    void clear();

  private:
    const slot_locations& at_;
    std::uint64_t all_ = 0;
    /// By number. A core joins the slots of one spine group on one island.
    std::vector<std::uint64_t> in_slot_, in_nvlink_, in_group_, in_spine_, in_island_, in_core_;
    std::vector<std::uint32_t> core_of_slot_;
    std::vector<std::uint32_t> slots_;  ///< that have members
};

}  // namespace banyan::topo
