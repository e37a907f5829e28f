// SPDX-License-Identifier: BSD-3-Clause
//
// Local search over assignments: single slots, and the shares that bins have of a ring or a pipeline. Hosts
// of one bin are alike here; which of them a slot gets is decided at the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topo/placement/communication_graph.hpp"

namespace banyan::topo {

class slot_search {
  public:
    /// `bin_of_slot`: indices into bins; no bin has more slots than hosts. Keeps references.
    slot_search(const bin_distances& distance, const communication_graph& graph, const std::vector<bin>& bins,
                std::vector<std::uint32_t> bin_of_slot);

    double objective() const { return graph_.objective(distance_, at_); }
    const std::vector<std::uint32_t>& bin_of_slot() const { return at_; }

    /// Moves slots to free hosts and exchanges slots, one by one and by the share that a bin has of a line
    /// (slots that a ring or a pipeline joins), as long as that lowers the objective: first improvement, down
    /// to a local minimum. Looks at `budget` edges at most, and at as many other things as `limit` allows.
    void run(std::span<const partition* const> lines, std::int64_t budget, work& limit);

  private:
    double cost_of(std::uint32_t slot) const;
    double cost_of(std::span<const std::uint32_t> slots) const;
    std::size_t room(std::uint32_t bin) const { return bins_[bin].size - slots_of_[bin].size(); }
    void put(std::span<const std::uint32_t> slots, std::uint32_t to);
    void enlist(std::span<const std::uint32_t> slots, std::uint32_t from, std::uint32_t to);
    bool try_exchange(std::span<const std::uint32_t> here, std::span<const std::uint32_t> there,
                      std::uint32_t to);
    bool improve_slot(std::uint32_t slot);
    bool improve_shares(std::span<const partition* const> lines, work& limit);

    const bin_distances& distance_;
    const communication_graph& graph_;
    const std::vector<bin>& bins_;
    std::vector<std::uint32_t> at_;                     ///< by slot: its bin
    std::vector<std::vector<std::uint32_t>> slots_of_;  ///< by bin
    mutable std::int64_t budget_ = 0;                   ///< edges that may still be looked at
};

}  // namespace banyan::topo
