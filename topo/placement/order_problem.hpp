// SPDX-License-Identifier: BSD-3-Clause
//
// What construct_orders assigns, and in which sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/placement/bins.hpp"
#include "topo/placement/job_slots.hpp"

namespace banyan::topo {

struct order_problem {
    const job_slots& job;
    std::uint32_t slots = 0;
    std::uint32_t spares = 0;
    /// Sizes, in slots, of what is to be in one place: rings, single slots, pipelines, expert groups, and
    /// what these make together. Those first that a job loses least by which is too large to look further.
    std::vector<std::uint32_t> items;
    /// Each of all slots, in their own order first.
    std::vector<std::vector<std::uint32_t>> sequences;
    /// So many stages of some pipelines in one place (job_slots::sequence_in_tiles), so that rings leave
    /// fewer places than with whole pipelines, and fewer pipelines do than with whole rings.
    std::vector<std::uint32_t> tiles;
    /// That one pipeline, with those it exchanges tokens with, has in a stage.
    std::uint32_t slots_of_stage = 1;
    /// The bin of each free host, in the order of the hosts' names.
    std::vector<std::uint32_t> bin_by_name;
};
order_problem slots_in_order(const request& r, const job_slots& job, const std::vector<bin>& bins);

}  // namespace banyan::topo
