// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-topo diff prints for people: a work order, as tables on a terminal or as CSV.
#pragma once

#include <vector>

#include <banyan/topo/work_order.hpp>

namespace banyan::topo::cli {

void print_order(const std::vector<work_item>& items);
void print_order_csv(const std::vector<work_item>& items);

}  // namespace banyan::topo::cli
