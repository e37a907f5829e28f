// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/placement.hpp>

#include "topo/placement/job_slots.hpp"

namespace banyan::topo {

/// placement_cost::spine_bound: least bytes that leave leaf groups with every unit whole, were the whole
/// fabric free; 0 where the units make no grid of dp, cp and ep, of which nothing is known.
///
/// The units are a product of rings (dp, cp) and of groups in which everybody sends to everybody (ep). What
/// is in one leaf group is a part of it that is not all, and sends to the rest at least the least cut: that
/// of whole groups along some of the dimensions, by what their units send along the others. (In a product
/// either all groups along one dimension are cut, or one along each is not; where these meet is the other
/// side, so that each unit of the part has a cut group along either.) So much leaves each of the leaf groups
/// that the hosts need at least.
double least_over_spines(const fabric& f, const request& r, const job_slots& job,
                         const std::vector<std::uint32_t>& slot_of_rank);

}  // namespace banyan::topo
