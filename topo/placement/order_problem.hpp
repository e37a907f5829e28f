// SPDX-License-Identifier: BSD-3-Clause
//
// What construct_orders assigns, and in which sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/placement/job_slots.hpp"

namespace banyan::topo {

/// What is to be assigned: the slots of a job, or its units as if each were one.
struct order_problem {
    std::uint32_t slots = 0;
    std::uint32_t spares = 0;
    /// Sizes, in slots, of what is to be in one place: rings, single slots, pipelines. Those first that a job
    /// loses least by which is too large to look further.
    std::vector<std::uint32_t> items;
    std::vector<std::vector<std::uint32_t>> sequences;  ///< each of all slots
    /// Between the two: so many stages of some pipelines in one place (job_slots::sequence_in_tiles), so that
    /// rings leave fewer places than with whole pipelines, and fewer pipelines do than with whole rings.
    std::vector<std::uint32_t> tiles;
    const job_slots* job = nullptr;  ///< where there are tiles
};
order_problem slots_in_order(const request& r, const job_slots& job);
order_problem units_in_order(const job_slots& job);

}  // namespace banyan::topo
