// SPDX-License-Identifier: BSD-3-Clause
//
// The slots of a job, by its request alone: which ranks share one, and which of them must stay near. One is
// made for each request and handed down.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "topo/placement/blocks.hpp"
#include "topo/placement/partition.hpp"

namespace banyan::topo {

class job_slots {
  public:
    /// Cost: O(slots log slots), whatever the number of ranks.
    explicit job_slots(const request& r);

    std::uint32_t count() const { return static_cast<std::uint32_t>(first_rank_.size()); }
    std::uint32_t first_rank(std::uint32_t slot) const { return first_rank_[slot]; }
    std::uint32_t slot_of(std::uint32_t rank) const { return slot_of_block_[cut_.block_of(rank)]; }
    /// The ranks of slot 0, then those of slot 1, and so on; ascending in each. Cost: O(ranks).
    std::vector<std::uint32_t> ranks_by_slot() const;

    /// Slots are the blocks in the order of their first ranks.
    const blocks& cut() const { return cut_; }
    std::uint32_t slot_of_block(std::uint32_t block) const { return slot_of_block_[block]; }

    /// Slots that a pipeline or tensor group connects; dp runs slowest.
    const partition& units() const { return units_; }
    /// Units that context or expert parallel groups connect. Equal to units without those.
    const partition& bundles() const { return bundles_; }
    /// Slots that a ring of data parallel peers joins.
    partition rings() const;
    /// Slots by the coordinates of their first rank: by `slow`, then by `fast`, then by number.
    std::vector<std::uint32_t> sequence_by(dimension slow, dimension fast) const;
    /// Slots by tiles of `stages` neighbouring stages (of those that slots begin with), in a tile pipeline by
    /// pipeline, forward and in the next one back, so that what begins a tile stands where the last one
    /// ended. Empty where one tile has all stages.
    std::vector<std::uint32_t> sequence_in_tiles(std::uint32_t stages) const;

  private:
    std::vector<std::uint32_t> coordinate_of_slots(dimension d) const;
    void connect(std::initializer_list<dimension> along, std::vector<std::uint32_t>& sets) const;

    shape dims_;
    blocks cut_;
    std::vector<std::uint32_t> slot_of_block_, block_of_slot_, first_rank_;
    std::vector<std::uint32_t> in_order_;  ///< 0, 1, ...
    partition units_, bundles_;
};

}  // namespace banyan::topo
