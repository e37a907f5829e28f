// SPDX-License-Identifier: BSD-3-Clause
//
// Names that are numbered in a row, and the one that the row leaves out.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace banyan::topo::build {

struct row_name {
    std::string name;  ///< empty where the others do not tell it
    int shows = 0;     ///< 1: their numbers leave it out; -1: they go on without it; 0: they tell neither
};

/// From names by their places, which ascend; `at` is none of those.
row_name name_in_row(const std::vector<std::pair<long, std::string>>& row, long at);

}  // namespace banyan::topo::build
