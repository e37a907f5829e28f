// SPDX-License-Identifier: BSD-3-Clause
//
// A request worked out: which ranks share a slot, and which slots must stay near. Depends on nothing else, so
// one is made for each question and handed down.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "topo/placement/partition.hpp"

namespace banyan::topo {

/// The ranks of slot 0, then those of slot 1, and so on; ascending in each. Slots are in the order of their
/// first ranks.
std::vector<std::uint32_t> ranks_by_slot(const request& r);

class job_layout {
  public:
    explicit job_layout(const request& r);

    std::uint32_t ranks() const { return static_cast<std::uint32_t>(ranks_.size()); }
    std::uint32_t slots() const { return ranks() / ranks_per_node_; }
    /// Of a slot, ascending.
    std::span<const std::uint32_t> ranks(std::uint32_t slot) const {
        return std::span(ranks_).subspan(std::size_t{slot} * ranks_per_node_, ranks_per_node_);
    }
    std::uint32_t first_rank(std::uint32_t slot) const { return ranks(slot).front(); }
    std::uint32_t slot_of(std::uint32_t rank) const { return slot_of_rank_[rank]; }

    /// Slots that a pipeline or tensor group connects; dp runs slowest.
    const partition& units() const { return units_; }
    /// Units that context or expert parallel groups connect. Equal to units without those.
    const partition& bundles() const { return bundles_; }
    /// Slots that a ring of data parallel peers joins.
    partition rings() const;
    /// Slots by the coordinates of their first rank: by `slow`, then by `fast`, then by number.
    std::vector<std::uint32_t> sequence_by(dimension slow, dimension fast) const;

  private:
    std::vector<std::uint32_t> coordinate_of_slots(dimension d) const;
    void connect(std::initializer_list<dimension> along, std::vector<std::uint32_t>& sets) const;

    shape dims_;
    std::uint32_t ranks_per_node_;
    std::vector<std::uint32_t> ranks_, slot_of_rank_;
    std::vector<std::uint32_t> in_order_;  ///< 0, 1, ...
    partition units_, bundles_;
};

}  // namespace banyan::topo
