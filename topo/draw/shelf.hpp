// SPDX-License-Identifier: BSD-3-Clause
//
// Boxes in rows, like books on shelves.
#pragma once

#include <utility>
#include <vector>

namespace banyan::topo::draw {

struct shelf {
    struct point {
        int x = 0, y = 0;
    };
    std::vector<point> at;  ///< top left corner of each box, the first row's top at 0
    int width = 0, height = 0;
    int rows = 0;
};

/// The number of columns near `wanted` that leaves the fewest gaps in the last row.
int even_columns(int boxes, int wanted, int most);

/// Keeps the order. The width is that of a picture of 8:5, between `least` and `most` where the boxes allow;
/// with `one_row_if_fits` everything that fits `most` stays in one row. Rows have even lengths.
shelf arrange_in_rows(const std::vector<std::pair<int, int>>& extents, int least, int most, int gap_x,
                      int gap_y, bool one_row_if_fits);

}  // namespace banyan::topo::draw
