// SPDX-License-Identifier: BSD-3-Clause
//
// A fabric, and a job on it, as one SVG file: self-contained, deterministic, well-formed whatever the names
// are. Large fabrics are folded so that the file stays in proportion to the number of leaf groups.
//
// Written with fmt, not with TinyXML-2 as NCCL's file: a flat list of a few kinds of elements is shorter as
// format strings, and takes half the time (300 000 of them in 0.9 s against 1.8 s). What comes from outside
// goes through escape_markup.
#pragma once

#include <string>

#include "topo/draw/layout.hpp"
#include "topo/draw/scene.hpp"

namespace banyan::topo::draw {

/// `j` may be null. An empty title becomes "Fabric".
std::string to_svg(const fabric& f, const job* j, const std::string& title);

/// The parts of the file, in svg_*.cpp.
namespace svg {

struct context {
    const fabric& f;
    const scene& s;
    const layout& at;
    const job* j;
    std::vector<const job_mark*> mark_of_host;  ///< null for hosts outside the job
    std::string out;
};

void write_links(context& c);
void write_switches(context& c);
void write_groups(context& c);
/// Title and figures, above the tree.
void write_header(context& c, const std::string& title);
/// Legend and defects, below it; gives the height of the picture.
int write_footer(context& c);
/// What stands before everything: style sheet and the pattern of spares.
std::string prologue(int width, int height, const std::string& title);

/// Text at a point; `limit` columns. `style` is a class of the style sheet.
void write_text(context& c, int x, int y, const char* style, const std::string& text, std::size_t limit);

}  // namespace svg
}  // namespace banyan::topo::draw
