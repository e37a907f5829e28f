// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/shelf.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace banyan::topo::draw {

int even_columns(int boxes, int wanted, int most) {
    int best = std::clamp(wanted, 1, std::max(1, std::min(most, boxes)));
    const auto cost = [&](int n) { return (n - boxes % n) % n * 2 + std::abs(n - wanted); };
    const int around = std::max(2, wanted / 4);
    for (int n = std::min({wanted + around, most, boxes}); n >= std::max(2, wanted - around); --n)
        if (cost(n) < cost(best)) best = n;
    return best;
}

shelf arrange_in_rows(const std::vector<std::pair<int, int>>& extents, int least, int most, int gap_x,
                      int gap_y, bool one_row_if_fits) {
    shelf out;
    if (extents.empty()) return out;
    double area = 0;
    long long total = -gap_x;
    for (const auto& [w, h] : extents) {
        area += double(w + gap_x) * (h + gap_y);
        total += w + gap_x;
    }
    auto limit = std::clamp(static_cast<int>(std::sqrt(area * 1.6)), least, most);
    if (one_row_if_fits && total <= most) limit = most;
    // As many rows as the limit asks for, all of about the same length.
    const auto rows = (total + limit - 1) / limit;
    const int boxes = static_cast<int>(extents.size());
    const int wanted = static_cast<int>((boxes + rows - 1) / rows);
    const int per_row = even_columns(
        boxes, wanted, std::max(wanted, static_cast<int>(boxes * (most + gap_x) / (total + gap_x))));
    int x = 0, y = 0, row_h = 0;
    int in_row = 0;
    out.rows = 1;
    for (const auto& [w, h] : extents) {
        if (in_row > 0 && (in_row >= per_row || x + w > std::max(limit, most))) {
            y += row_h + gap_y;
            x = row_h = 0;
            in_row = 0;
            ++out.rows;
        }
        out.at.push_back({x, y});
        out.width = std::max(out.width, x + w);
        x += w + gap_x;
        row_h = std::max(row_h, h);
        ++in_row;
    }
    out.height = y + row_h;
    return out;
}

}  // namespace banyan::topo::draw
