// SPDX-License-Identifier: BSD-3-Clause
//
// A request worked out: which ranks share a slot, and which slots must stay near. Depends on nothing else, so
// one is made for each question and handed down.
#pragma once

#include <initializer_list>
#include <vector>

#include <banyan/topo/placement.hpp>

namespace banyan::topo {

struct job_layout {
    explicit job_layout(const request& r);

    std::vector<std::vector<std::uint32_t>> ranks;  ///< slot -> its ranks, ascending
    std::vector<std::uint32_t> slot_of_rank;
    /// Slot -> unit: slots that a pipeline or tensor group connects. Dense; dp runs slowest.
    std::vector<std::uint32_t> units;
    /// Slot -> bundle: units that context or expert parallel groups connect. Equal to units without those.
    std::vector<std::uint32_t> bundles;

  private:
    void connect(const request& r, std::initializer_list<dimension> dims,
                 std::vector<std::uint32_t>& sets) const;
    static std::vector<std::uint32_t> dense(const std::vector<std::uint32_t>& sets,
                                            const std::vector<std::uint32_t>& sequence);
};

}  // namespace banyan::topo
