// SPDX-License-Identifier: BSD-3-Clause
//
// Where everything stands in the SVG: pure geometry in whole pixels, so that the same fabric gives the same
// file everywhere. Nothing here knows colours, texts or what is wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "topo/draw/scene.hpp"

namespace banyan::topo::draw {

struct box {
    int x = 0, y = 0, w = 0, h = 0;
    int cx() const { return x + w / 2; }
    int right() const { return x + w; }
    int bottom() const { return y + h; }
};

/// How much of a host is seen; decided by the size of the fabric.
enum class detail : std::uint8_t {
    cards,  ///< a card with its name and one dot for each rail
    cells,  ///< a cell; the group says the names of its first and last host
    tiles,  ///< a few pixels
};

struct placed {
    std::uint32_t index = none;
    box at;
};

struct group_layout {
    std::uint32_t group = none;
    box at;
    std::vector<placed> leaves, hosts;
    int bus_y = 0;  ///< height of the line that a folded spine group leads to this group's row
};

struct spine_group_layout {
    std::uint32_t spine_group = none;
    box at;
    bool direct = false;  ///< each bundle is a line of its own; otherwise one stub for each group
    box bar;              ///< all of its spines; empty when there are none
    std::vector<placed> spines;
    std::vector<group_layout> groups;
    int trunk_x = 0;
    int bus_y = 0;
};

struct layout {
    detail shown = detail::cards;
    int width = 0, bottom = 0;  ///< of the tree; what follows it begins at `bottom`
    bool direct = false;        ///< cores and spines are joined line by line
    box core_bar;
    std::vector<placed> cores;
    std::vector<spine_group_layout> spine_groups;
    int trunk_x = 0;
    std::size_t groups_left_out = 0;  ///< beyond max_groups_drawn
};

constexpr std::size_t max_groups_drawn = 4096;
constexpr int margin = 40;

/// The tree begins at `top`. `with_job`: cards have a line for a host's place in the job.
layout lay_out(const fabric& f, const scene& s, int top, bool with_job);

}  // namespace banyan::topo::draw
