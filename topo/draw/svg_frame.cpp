// SPDX-License-Identifier: BSD-3-Clause
//
// What stands around the tree in the SVG: title and figures above; legend, switches without a place and
// defects below.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topo/draw/escape.hpp"
#include "topo/draw/palette.hpp"
#include "topo/draw/svg.hpp"

namespace banyan::topo::draw::svg {
namespace {

constexpr std::size_t defects_listed = 12;

std::size_t room(const context& c, int from, int unit10) {
    return static_cast<std::size_t>(std::max(c.at.width - margin - from, 0)) * 10 /
           static_cast<std::size_t>(unit10);
}

std::string figures(const context& c) {
    std::size_t leaves = 0, spines = 0;
    for (const auto& g : c.f.leaf_groups) leaves += g.leaves.size();
    for (const auto& p : c.s.spine_groups) spines += p.spines.size();
    auto out = counted(c.f.hosts.size(), "host") + "  ·  " + counted(c.f.hcas.size(), "HCA") + "  ·  " +
               counted(c.f.leaf_groups.size(), "leaf group") + "  ·  " + counted(leaves, "leaf", "leaves") +
               "  ·  " + counted(spines, "spine");
    if (!c.s.cores.empty()) out += "  ·  " + counted(c.s.cores.size(), "core switch", "core switches");
    return out + "  ·  " + counted(c.f.links.size(), "link");
}

/// Items from left to right, row by row.
class legend {
  public:
    legend(context& c, int y) : c_(c), y_(y) {}

    void add(const std::string& text, const std::string& swatch) {
        const int w = 30 + static_cast<int>(columns(text)) * 13 / 2;
        if (x_ > margin && x_ + w > c_.at.width - margin) next_row();
        fmt::format_to(std::back_inserter(c_.out), "<g transform=\"translate({} {})\">{}</g>\n", x_, y_,
                       swatch);
        write_text(c_, x_ + 26, y_ + 4, "s", text, 60);
        x_ += w + 14;
    }
    void next_row() {
        x_ = margin;
        y_ += 24;
    }
    int y() const { return y_; }

  private:
    context& c_;
    int x_ = margin, y_;
};

std::string line(const char* color, double width, const char* more = "") {
    return fmt::format("<path class=\"l\" d=\"M0 0H20\" stroke=\"{}\" stroke-width=\"{:.1f}\"{}/>", color,
                       width, more);
}

std::string square(const std::string& fill, const char* stroke) {
    return fmt::format(
        "<rect x=\"3\" y=\"-7\" width=\"14\" height=\"14\" rx=\"3\" fill=\"{}\" stroke=\"{}\"/>", fill,
        stroke);
}

/// The count that most bundles have, where lines stand for bundles.
std::string usual_bundle(const context& c) {
    std::map<std::uint32_t, std::size_t> n;
    for (const auto& b : c.s.bundles) ++n[b.count];
    const auto most =
        std::max_element(n.begin(), n.end(), [](auto& a, auto& b) { return a.second < b.second; });
    return most == n.end() ? "" : counted(most->first, "parallel link");
}

void write_job_legend(context& c, legend& l) {
    std::map<std::uint32_t, std::size_t> hosts_of_color;
    bool spares = false;
    for (const auto& m : c.j->marks) {
        if (m.spare)
            spares = true;
        else
            ++hosts_of_color[m.color];
    }
    constexpr std::size_t most = 10;
    for (const auto& [color, hosts] : hosts_of_color) {
        if (color >= most) break;
        l.add(color < c.j->colors.size() ? c.j->colors[color] : "host of the job",
              fmt::format("<rect x=\"3\" y=\"-7\" width=\"14\" height=\"14\" rx=\"3\" fill=\"{0}\" "
                          "fill-opacity=\"{1}\" stroke=\"{0}\"/>",
                          job_color(color), c.at.shown == detail::cards ? "0.3" : "1"));
    }
    if (hosts_of_color.size() > most)
        l.add(fmt::format("and {} more; colours repeat", hosts_of_color.size() - most), "");
    if (spares) l.add("spare", square("url(#spare)", "#98a4ae"));
}

int write_legend(context& c, int y) {
    legend l(c, y);
    const bool lines =
        std::any_of(c.at.spine_groups.begin(), c.at.spine_groups.end(), [](auto& p) { return p.direct; });
    for (std::size_t i = 0; i < std::min<std::size_t>(c.s.rates.size(), 6); ++i)
        l.add(rate_text(c.s.rates[i].rate), line(rate_color(c.s.rates[i].rate), 2.4));
    if (const auto usual = usual_bundle(c); lines && !usual.empty())
        l.add("a line is " + usual + " unless it says otherwise", line("#8793a0", 1.4));
    l.add("slow, narrow, misplaced, or up and bad", line(health_color(health::degraded), 2.4));
    l.add("missing or broken", line(health_color(health::broken), 2.4, " stroke-dasharray=\"4 4\""));
    if (c.at.shown != detail::cards)
        l.add("a cell is a host", square(c.j ? "#dde3e8" : "#a9c1d3", "none"));
    else if (!c.f.untold.rails)
        l.add("one dot for each rail",
              "<rect x=\"2\" y=\"-3\" width=\"6\" height=\"6\" rx=\"1\" fill=\"#5b97bd\"/>"
              "<rect x=\"11\" y=\"-3\" width=\"6\" height=\"6\" rx=\"1\" class=\"gap\"/>");
    if (c.j) {
        l.next_row();
        write_job_legend(c, l);
    }
    return l.y();
}

int write_rest(context& c, int y) {
    std::map<std::string, std::size_t> kinds;
    for (const auto& e : c.f.excluded) ++kinds[e.kind];
    std::string text;
    for (const auto& [kind, n] : kinds)
        text += fmt::format("{}{} {}", text.empty() ? "Not for jobs: " : ", ", n, kind);
    if (!c.s.stray.empty())
        text += fmt::format("{}{} without a place in the tree", text.empty() ? "" : ";  ",
                            counted(c.s.stray.size(), "switch", "switches"));
    if (c.at.groups_left_out)
        text += fmt::format("{}{} not drawn", text.empty() ? "" : ";  ",
                            counted(c.at.groups_left_out, "more leaf group"));
    if (text.empty()) return y;
    write_text(c, margin, y + 28, "s", text, room(c, margin, 70));
    return y + 28;
}

void write_defect(context& c, int y, const defect& d, health severity) {
    fmt::format_to(std::back_inserter(c.out), "<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/>\n",
                   margin + 5, y - 4, health_color(severity));
    write_text(c, margin + 18, y, "n", d.kind, 16);
    std::string objects;
    for (const auto& o : d.objects) {
        if (objects.size() > 300) break;
        objects += (objects.empty() ? "" : ", ") + o;
    }
    write_text(c, margin + 128, y, "m n", objects + " \u2013 " + d.evidence, room(c, margin + 128, 67));
}

int write_defects(context& c, int y) {
    if (faults(c.s) == 0) return y;
    y += 38;
    write_text(c, margin, y, "g", counted(faults(c.s), "defect"), 30);
    auto order = in_order(c.s);
    std::erase_if(order, [&](auto i) { return c.s.defects[i].notice; });
    for (std::size_t i = 0; i < std::min(order.size(), defects_listed); ++i)
        write_defect(c, y += 19, c.f.defects[order[i]], c.s.defects[order[i]].severity);
    if (order.size() > defects_listed)
        write_text(c, margin + 18, y += 19, "s", fmt::format("and {} more", order.size() - defects_listed),
                   30);
    return y;
}

/// Leaves whose hosts are off: no defects, and told apart from them.
int write_notices(context& c, int y) {
    std::string leaves;
    std::size_t n = 0;
    for (const auto& d : c.f.defects) {
        if (!is_notice(d)) continue;
        ++n;
        for (const auto& o : d.objects)
            if (leaves.size() < 400) leaves += (leaves.empty() ? "" : ", ") + o;
    }
    if (n == 0) return y;
    write_text(c, margin, y + 28, "s",
               fmt::format("{} without a host: {}", counted(n, "leaf", "leaves"), leaves),
               room(c, margin, 70));
    return y + 28;
}

}  // namespace

void write_header(context& c, const std::string& title) {
    write_text(c, margin, 50, "t", title, room(c, margin + 160, 150));
    const auto defects = faults(c.s);
    write_text(c, c.at.width - margin, 50, defects ? "g end" : "ok end",
               defects ? counted(defects, "defect") : "no defects", 24);
    write_text(c, margin, 72, "s", figures(c), room(c, margin, 68));
    if (c.j) write_text(c, margin, 91, "s", c.j->text, room(c, margin, 70));
}

int write_footer(context& c) {
    int y = c.at.bottom + 40;
    fmt::format_to(std::back_inserter(c.out), "<path d=\"M{} {}H{}\" stroke=\"#dfe3e7\"/>\n", margin, y - 18,
                   c.at.width - margin);
    y = write_legend(c, y + 4);
    y = write_rest(c, y);
    y = write_notices(c, y);
    return write_defects(c, y) + 34;
}

}  // namespace banyan::topo::draw::svg
