// SPDX-License-Identifier: BSD-3-Clause
//
// Where the slots of a placed job meet: pair by pair, and for a group in which everybody sends to everybody,
// by how many of it are where.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/traffic.hpp>

namespace banyan::topo {

class meeting_points {
  public:
    /// `nodes`: slot -> host index; one that is not on the fabric is far from everybody.
    meeting_points(const fabric& f, std::span<const std::uint32_t> nodes);

    std::uint32_t slots() const { return static_cast<std::uint32_t>(at_.size()); }
    /// none for a slot that is in no leaf group, as of the next.
    std::uint32_t group(std::uint32_t slot) const { return at_[slot].group; }
    std::uint32_t spine(std::uint32_t slot) const { return at_[slot].spine; }
    tier between(std::uint32_t a, std::uint32_t b) const;

  private:
    friend class gathering;
    struct place {
        std::uint32_t group = none, spine = none, island = none;
        std::uint32_t core = 0;  ///< number of its pair of spine group and island
    };
    std::vector<place> at_;
    std::uint32_t groups_ = 0, spines_ = 0, islands_ = 0, cores_ = 0;  ///< the numbers are below
};

/// Members of one group at a time. Cost: O(members), whatever the pairs.
class gathering {
  public:
    explicit gathering(const meeting_points& at);

    void add(std::uint32_t slot, std::uint64_t members);
    /// Ordered pairs of members by the tier where they meet.
    std::array<std::uint64_t, tier_count> pairs() const;
    /// Members that a member on `slot` meets above the leaf.
    std::uint64_t above_leaf(std::uint32_t slot) const;
    /// For the next group.
    void clear();

  private:
    const meeting_points& at_;
    std::uint64_t all_ = 0;
    std::vector<std::uint64_t> in_slot_, in_group_, in_spine_, in_island_, in_core_;
    std::vector<std::uint32_t> slots_;  ///< that have members
};

}  // namespace banyan::topo
