// SPDX-License-Identifier: BSD-3-Clause
//
// The communication graph of a job: its slots, and what they send to each other. Placement maps it onto the
// bins of free hosts; the objective is the sum of weight times distance over its edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/bins.hpp"
#include "topo/placement/job_slots.hpp"

namespace banyan::topo {

/// An edge weighs what all ranks of its two slots send to each other in a step, both ways: how many sends of
/// each dimension, by arithmetic, times what one weighs. Where everybody sends to everybody and the pairs are
/// more than max_pairs, a slot has edges to some that stand for the others, so that the graph grows with the
/// nodes and not with their square. Ranks that share a slot are no edge.
class communication_graph {
  public:
    struct edge {
        std::uint32_t to = 0;
        double weight = 0;
    };
    static constexpr std::size_t max_pairs = 1 << 14;
    /// `weights`: of a send along each dimension. Cost: O(nodes), whatever the ranks.
    communication_graph(const request& r, const job_slots& job, const traffic& weights);

    std::uint32_t vertices() const { return static_cast<std::uint32_t>(first_.size()) - 1; }
    std::size_t edges() const { return edges_.size(); }

    /// At most one to each other slot.
    std::span<const edge> of(std::uint32_t slot) const {
        return {edges_.data() + first_[slot], edges_.data() + first_[slot + 1]};
    }

    /// With each slot in the bin given, over all edges.
    double objective(const bin_distances& distance, const std::vector<std::uint32_t>& bin_of_slot) const;
    /// The same, but stops at `limit`. Takes the edges that it looked at off `budget`.
    double objective(const bin_distances& distance, const std::vector<std::uint32_t>& bin_of_slot,
                     double limit, std::int64_t& budget) const;
    /// How much larger it is with each slot in `after` than in `before`, which differ in the slots `moved`.
    double difference(const bin_distances& distance, const std::vector<std::uint32_t>& before,
                      const std::vector<std::uint32_t>& after, std::span<const std::uint32_t> moved,
                      std::int64_t& budget) const;

  private:
    struct pair {
        std::uint32_t a, b;
        double weight;
    };
    void connect(std::uint32_t vertices, const std::vector<pair>& pairs);
    void merge_parallel_edges();

    std::vector<std::uint32_t> first_;
    std::vector<edge> edges_;  ///< each in both directions
};

}  // namespace banyan::topo
