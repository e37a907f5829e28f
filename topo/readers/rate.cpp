// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/cursor.hpp"

namespace banyan::topo {

link_rate take_rate(cursor& c) {
    struct speed {
        std::string_view name;
        std::uint16_t lane_gbps10;
    };
    // Effective data rate of one lane (IBTA volume 2, encoding subtracted), in Gbit/s times 10.
    static constexpr speed speeds[] = {{"NDR", 1000}, {"HDR", 500},   {"XDR", 2000},
                                       {"EDR", 250},  {"FDR10", 100}, {"FDR", 136},
                                       {"QDR", 80},   {"DDR", 40},    {"SDR", 20}};
    link_rate rate;
    if (const auto width = c.number<std::uint16_t>()) rate.width = *width;
    if (!c.skip("x")) return rate;
    c.blanks();
    const auto word = c.word();
    for (const auto& s : speeds)
        if (word == s.name) rate.lane_gbps10 = s.lane_gbps10;
    return rate;
}

}  // namespace banyan::topo
