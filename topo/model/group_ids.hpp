// SPDX-License-Identifier: BSD-3-Clause
//
// Users, graphs and Slurm's topology files know leaf groups by their ids: a group keeps its own for as long
// as it can be recognised.
#pragma once

#include <banyan/topo/fabric.hpp>

namespace banyan::topo::build {

/// "g1", "g2", ... by the smallest GUID of their switches.
void number_groups(fabric& f);

/// The ids that `before` gave: to the group that has most of the switches that the id stood for, or failing
/// that, most of the hosts. The others get numbers that were never used. What is gone stays remembered.
void keep_group_ids(fabric& now, const fabric& before);

}  // namespace banyan::topo::build
