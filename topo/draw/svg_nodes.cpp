// SPDX-License-Identifier: BSD-3-Clause
//
// Boxes of the SVG: switches, leaf groups, hosts.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topo/draw/escape.hpp"
#include "topo/draw/palette.hpp"
#include "topo/draw/svg.hpp"

namespace banyan::topo::draw::svg {
namespace {

template <class... Args>
void put(context& c, fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(c.out), text, std::forward<Args>(args)...);
}

std::string rect(const box& b, int radius, const char* how, const std::string& style = {}) {
    return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" class=\"{}\"{}", b.x,
                       b.y, b.w, b.h, radius, how, style.empty() ? "" : " style=\"" + style + "\"");
}

std::string alarm(health h) {
    return h == health::good ? "" : fmt::format("stroke:{0};fill:{0};fill-opacity:.25", health_color(h));
}

void write_switch(context& c, const placed& p, const std::string& fallback) {
    const auto& sw = c.f.switches[p.index];
    put(c, "{}><title>{}</title></rect>\n", rect(p.at, 4, "sw", alarm(c.s.switches[p.index])),
        escape_markup(sw.name));
    const auto room = static_cast<std::size_t>(std::max(p.at.w - 6, 0)) * 10 / 56;
    const auto card = clean(card_name(sw.name));
    auto text = clean(short_name(sw.name));
    if (!card.empty() && !text.ends_with(card)) text += "/" + card;
    if (columns(text) > room && !card.empty()) text = card;
    if (columns(text) > room && !fallback.empty()) text = fallback;
    if (room >= 2 && p.at.h >= 14) write_text(c, p.at.cx(), p.at.y + p.at.h / 2 + 3, "m x mid", text, room);
}

void write_bar(context& c, const box& bar, const std::vector<placed>& cells, std::size_t switches,
               const char* one, const char* many) {
    put(c, "{}/>\n", rect(bar, 6, "sw"));
    const auto text = counted(switches, one, many);
    const int text_right = bar.x + 14 + static_cast<int>(text.size()) * 8;
    if (text_right < bar.right()) write_text(c, bar.x + 14, bar.y + bar.h / 2 + 4, "g", text, 60);
    for (const auto& p : cells) {
        if (p.at.x < text_right + 10) continue;
        const auto h = c.s.switches[p.index];
        put(c, "{}><title>{}</title></rect>\n",
            rect(p.at, 2, "", fmt::format("fill:{}", h == health::good ? "#b6c4d0" : health_color(h))),
            escape_markup(c.f.switches[p.index].name));
    }
}

/// One dot for each rail: its HCA's speed, its trouble, or a hole.
void write_rails(context& c, const box& card, std::uint32_t host) {
    const auto& h = c.f.hosts[host];
    const auto group = h.leaf_group;
    std::size_t rails = h.hcas.size();
    if (group != none)
        if (const auto& g = c.f.leaf_groups[group]; !g.leaves.empty())
            rails = std::max({rails, g.leaves.size(), rail_at(g, g.leaves.size() - 1) + 1});
    rails = std::min<std::size_t>(rails, 16);
    std::vector<std::uint32_t> at(rails, none), unplaced;
    for (const auto i : h.hcas) {
        const auto& a = c.f.hcas[i];
        const bool foreign = a.leaf == none || group == none || c.s.group_of_switch[a.leaf] != group;
        if (!foreign && a.rail < rails && at[a.rail] == none)
            at[a.rail] = i;
        else
            unplaced.push_back(i);
    }
    for (const auto i : unplaced)
        if (const auto hole = std::find(at.begin(), at.end(), none); hole != at.end()) *hole = i;
    for (std::size_t r = 0; r < rails; ++r) {
        const box dot{card.x + 8 + static_cast<int>(r) * 8, card.y + 22, 6, 6};
        if (at[r] == none || c.f.hcas[at[r]].leaf == none) {
            put(c, "{}/>\n", rect(dot, 1, "gap"));
            continue;
        }
        const auto state = c.s.hcas[at[r]];
        put(c, "{}/>\n",
            rect(dot, 1, "",
                 fmt::format("fill:{}", state == health::good ? rate_color(c.f.hcas[at[r]].rate)
                                                              : health_color(state))));
    }
}

void write_card(context& c, const placed& p) {
    const auto* mark = c.mark_of_host[p.index];
    const auto state = c.s.hosts[p.index];
    std::string style;
    if (mark)
        style = mark->spare ? "fill:url(#spare);stroke:#98a4ae"
                            : fmt::format("fill:{0};fill-opacity:.16;stroke:{0}", job_color(mark->color));
    if (state != health::good)
        style += fmt::format("{}stroke:{};stroke-width:1.6", style.empty() ? "" : ";", health_color(state));
    put(c, "{}/>\n", rect(p.at, 4, "box", style));
    if (mark && mark->spare)  // names are read on white, not on the hatching
        put(c, "{}/>\n", rect({p.at.x + 4, p.at.y + 4, p.at.w - 8, 28}, 3, "", "fill:#fff"));
    write_text(c, p.at.x + 8, p.at.y + 16, "m n", c.f.hosts[p.index].name,
               static_cast<std::size_t>(p.at.w - 12) * 10 / 67);
    if (!c.f.untold.rails) write_rails(c, p.at, p.index);
    if (!mark) return;
    if (mark->spare) put(c, "{}/>\n", rect({p.at.x + 4, p.at.y + 34, 42, 13}, 3, "", "fill:#fff"));
    write_text(c, p.at.x + 8, p.at.y + 44, "g x", mark->label, static_cast<std::size_t>(p.at.w - 12) / 6);
}

/// Cells and tiles: one path for each colour keeps the file small.
void write_cells(context& c, const std::vector<placed>& hosts) {
    std::map<std::string, std::string> paths;  // style -> path
    for (const auto& p : hosts) {
        const auto* mark = c.mark_of_host[p.index];
        const auto state = c.s.hosts[p.index];
        const std::string fill = mark  ? (mark->spare ? "url(#spare)" : job_color(mark->color))
                                 : c.j ? "#dde3e8"
                                       : "#a9c1d3";
        const auto square = fmt::format("M{} {}h{}v{}h-{}z", p.at.x, p.at.y, p.at.w, p.at.h, p.at.w);
        std::string style =
            "fill:" + (mark || state == health::good ? fill : std::string(health_color(state)));
        if (mark && mark->spare) style += ";stroke:#8793a0;stroke-width:.8";
        if (mark && state != health::good)
            style += fmt::format(";stroke:{};stroke-width:2", health_color(state));
        paths[style] += square;
    }
    for (const auto& [style, path] : paths) put(c, "<path style=\"{}\" d=\"{}\"/>\n", style, path);
}

/// How many; painted where the group itself is broken.
void write_badge(context& c, const group_layout& g, int y, bool words) {
    const auto n = c.s.defects_of_group[g.group];
    if (n == 0) return;
    const auto text = words ? counted(n, "defect") : std::to_string(n);
    const int w = static_cast<int>(text.size()) * 6 + 10;
    const int x = g.at.right() - w - 8;
    put(c,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"13\" rx=\"6\" fill=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\" class=\"x mid\" style=\"fill:#fff\">{}</text>\n",
        x, y - 10, w, c.s.groups[g.group] == health::good ? "#63717e" : health_color(c.s.groups[g.group]),
        x + w / 2, y, text);
}

void write_group(context& c, const group_layout& g) {
    const auto& group = c.f.leaf_groups[g.group];
    const auto state = c.s.groups[g.group];
    const bool cards = c.at.shown == detail::cards, tiles = c.at.shown == detail::tiles;
    put(c, "{}><title>{}</title></rect>\n",
        rect(g.at, tiles ? 4 : 8, "box",
             state == health::good ? "" : fmt::format("stroke:{}", health_color(state))),
        escape_markup(fmt::format("{}: {}, {}", group.id, counted(group.hosts.size(), "host"),
                                  counted(group.leaves.size(), "leaf", "leaves"))));
    for (std::size_t i = 0; i < g.leaves.size(); ++i)
        write_switch(c, g.leaves[i], c.f.untold.rails ? "" : fmt::format("r{}", rail_at(group, i)));
    const int top = g.leaves.empty() ? g.at.y : g.leaves.front().at.bottom();
    const int x = (g.leaves.empty() ? g.at.x + 8 : g.leaves.front().at.x) + (tiles ? 0 : 1);
    const int y = top + (tiles ? 14 : 18);
    write_text(c, x, y, "g", group.id, 8);
    write_badge(c, g, y, !tiles);
    if (tiles && !group.hosts.empty() && c.s.defects_of_group[g.group] == 0)
        write_text(c, g.leaves.empty() ? g.at.right() - 8 : g.leaves.back().at.right(), y, "m x end q",
                   c.f.hosts[group.hosts.front()].name, static_cast<std::size_t>(g.at.w - 54) * 10 / 56);
    if (cards) {
        const auto about = counted(group.hosts.size(), "host") +
                           (c.f.untold.rails ? std::string() : " · " + counted(group.leaves.size(), "rail"));
        if (g.at.w > 240) write_text(c, x + 34, y, "s", about, 40);
        for (const auto& h : g.hosts) write_card(c, h);
        return;
    }
    if (!tiles && !group.hosts.empty())
        write_text(c, x, y + 15, "m x",
                   c.f.hosts[group.hosts.front()].name + " \u2013 " + c.f.hosts[group.hosts.back()].name,
                   static_cast<std::size_t>(g.at.w - 16) * 10 / 56);
    write_cells(c, g.hosts);
}

}  // namespace

void write_switches(context& c) {
    if (c.at.core_bar.h && !c.at.direct)
        write_bar(c, c.at.core_bar, c.at.cores, c.s.cores.size(), "core switch", "core switches");
    if (c.at.direct)
        for (const auto& p : c.at.cores) write_switch(c, p, "");
    for (const auto& p : c.at.spine_groups) {
        if (p.direct)
            for (const auto& sw : p.spines) write_switch(c, sw, "");
        else if (p.bar.h)
            write_bar(c, p.bar, p.spines, c.s.spine_groups[p.spine_group].spines.size(), "spine", "spines");
    }
}

void write_groups(context& c) {
    for (const auto& p : c.at.spine_groups)
        for (const auto& g : p.groups) write_group(c, g);
}

}  // namespace banyan::topo::draw::svg
