// SPDX-License-Identifier: BSD-3-Clause
//
// Slots on pools while a placement is being improved: what it costs, and the moves that make it cost less.
// Hosts of one pool are alike here; which of them a slot gets is decided at the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/tier.hpp>

#include "topo/placement/layout.hpp"
#include "topo/placement/pools.hpp"

namespace banyan::topo {

/// What an edge between two pools costs.
class distances {
  public:
    distances(const fabric& f, const std::vector<pool>& pools);
    double operator()(std::uint32_t a, std::uint32_t b) const {
        return a == b ? 0 : cost_[tier_between(at_[a], at_[b])];
    }

  private:
    std::vector<location> at_;
    by_tier<double> cost_;
};

/// Which slots send to each other, and how much in a step, by weights_of. Counted on the first rank of each
/// slot: the others do the same on other rails. In an expert parallel group everybody sends to everybody;
/// with more pairs than max_pairs a slot has edges to some that stand for the others, so that the graph grows
/// with the nodes and not with their square.
class slot_graph {
  public:
    struct edge {
        std::uint32_t to = 0;
        double weight = 0;
    };
    static constexpr std::size_t max_pairs = 1 << 14;
    slot_graph(const request& r, const job_layout& layout);

    std::size_t edges() const { return edges_.size(); }

    std::span<const edge> of(std::uint32_t slot) const {
        return {edges_.data() + first_[slot], edges_.data() + first_[slot + 1]};
    }

    /// With each slot at the pool given, over all edges; stops at `limit`. Takes the edges that it looked at
    /// off `budget`.
    double cost(const distances& far, const std::vector<std::uint32_t>& pool_of_slot, double limit,
                std::int64_t& budget) const;

    /// What it costs more with each slot at `after` than at `before`, which differ in the slots `moved`.
    double difference(const distances& far, const std::vector<std::uint32_t>& before,
                      const std::vector<std::uint32_t>& after, std::span<const std::uint32_t> moved,
                      std::int64_t& budget) const;

  private:
    std::vector<std::uint32_t> first_;
    std::vector<edge> edges_;  ///< each in both directions
};

class seating {
  public:
    /// `pool_of_slot`: indices into pools; no pool has more slots than hosts. Keeps references.
    seating(const distances& far, const slot_graph& graph, const std::vector<pool>& pools,
            std::vector<std::uint32_t> pool_of_slot);

    /// Weight over every tier above the leaf, times fabric::tier_cost.
    double cost() const;
    const std::vector<std::uint32_t>& pool_of_slot() const { return at_; }

    /// Moves slots to free hosts and swaps slots, one by one and by the share that a pool has of a line
    /// (slots that a ring or a pipeline joins), as long as that lowers the cost. Looks at `budget` edges at
    /// most, and at as many other things as `limit` allows.
    void improve(std::span<const partition* const> lines, std::int64_t budget, work& limit);

  private:
    double cost_of(std::uint32_t slot) const;
    double cost_of(std::span<const std::uint32_t> slots) const;
    std::size_t room(std::uint32_t pool) const {
        return (*pools_)[pool].hosts.size() - slots_of_[pool].size();
    }
    void put(std::span<const std::uint32_t> slots, std::uint32_t to);
    void enlist(std::span<const std::uint32_t> slots, std::uint32_t from, std::uint32_t to);
    bool try_exchange(std::span<const std::uint32_t> here, std::span<const std::uint32_t> there,
                      std::uint32_t to);
    bool improve_slot(std::uint32_t slot);
    bool improve_shares(std::span<const partition* const> lines, work& limit);

    const distances* far_;  // pointers, since one seating is assigned to another
    const slot_graph* graph_;
    const std::vector<pool>* pools_;
    std::vector<std::uint32_t> at_;                     ///< by slot: its pool
    std::vector<std::vector<std::uint32_t>> slots_of_;  ///< by pool
    mutable std::int64_t budget_ = 0;                   ///< edges that may still be looked at
};

}  // namespace banyan::topo
