// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/svg.hpp"

#include <fmt/format.h>

#include "topo/draw/escape.hpp"

namespace banyan::topo::draw {
namespace svg {

void write_text(context& c, int x, int y, const char* style, const std::string& text, std::size_t limit) {
    fmt::format_to(std::back_inserter(c.out), "<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, style,
                   escape_markup(fit(clean(text), limit)));
}

std::string prologue(int width, int height, const std::string& title) {
    return fmt::format(
        R"svg(<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">
<title>{2}</title>
<style>
text{{font-family:Inter,"Helvetica Neue","DejaVu Sans",Arial,sans-serif;fill:#22303c}}
.m{{font-family:"DejaVu Sans Mono",Menlo,Consolas,monospace}}
.t{{font-size:22px;font-weight:600}}
.s{{font-size:12px;fill:#63717e}}
.g{{font-size:12px;font-weight:600}}
.n{{font-size:11px}}
.x{{font-size:9px;fill:#4a5965}}
.q{{fill:#8794a0}}
.mid{{text-anchor:middle}}
.end{{text-anchor:end}}
.ok{{fill:#3f8f6a;font-weight:600}}
.l{{fill:none;stroke-linecap:round}}
.box{{fill:#fff;stroke:#d9dfe4}}
.spine-group{{fill:#f1f3f4;stroke:#e2e6ea}}
.sw{{fill:#e4eaef;stroke:#c3ced7}}
.gap{{fill:none;stroke:#c8372d}}
</style>
<defs><pattern id="spare" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#f4f5f6"/><rect width="2.5" height="6" fill="#aab4bd"/></pattern></defs>
<rect width="{0}" height="{1}" fill="#fafaf8"/>
)svg",
        width, height, escape_markup(title));
}

}  // namespace svg

std::string to_svg(const fabric& f, const job* j, const std::string& title) {
    constexpr int header_h = 112;
    const auto name = title.empty() ? std::string("Fabric") : title;
    const auto s = make_scene(f);
    const auto at = lay_out(f, s, header_h, j != nullptr);
    svg::context c{f, s, at, j, std::vector<const job_mark*>(f.hosts.size()), {}};
    if (j)
        for (const auto& m : j->marks)
            if (m.host < f.hosts.size()) c.mark_of_host[m.host] = &m;
    svg::write_header(c, name);
    svg::write_links(c);
    svg::write_switches(c);
    svg::write_groups(c);
    const int height = svg::write_footer(c);
    return svg::prologue(at.width, height, name) + c.out + "</svg>\n";
}

}  // namespace banyan::topo::draw
