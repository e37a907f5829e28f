// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/layout.hpp"

#include <algorithm>
#include <cmath>

#include "topo/draw/escape.hpp"
#include "topo/draw/shelf.hpp"

namespace banyan::topo::draw {
namespace {

constexpr int gap = 16;
constexpr int switch_h = 26;

struct sizes {
    int cell_w, cell_h, pitch_gap;  // of a host
    int pad, head, leaf_h, least_w;
};

class designer {
  public:
    designer(const fabric& f, const scene& s, bool with_job) : f_(f), s_(s), detail_(choose(f)) {
        std::size_t name = 0, rails = 1;
        if (detail_ != detail::cells)
            for (const auto& h : f.hosts) name = std::max(name, columns(clean(h.name)));
        for (const auto& g : f.leaf_groups) rails = std::max(rails, g.leaves.size());
        std::vector<std::size_t> members;
        for (const auto& g : f.leaf_groups) members.push_back(g.hosts.size());
        std::sort(members.begin(), members.end());
        if (!members.empty()) usual_hosts_ = static_cast<int>(members[members.size() / 2]);
        most_leaves_ = static_cast<int>(rails);
        if (detail_ == detail::cards)
            for (const auto& g : f.leaf_groups)
                for (const auto leaf : g.leaves)
                    leaf_w_ = std::clamp(
                        static_cast<int>(columns(clean(short_name(f.switches[leaf].name)))) * 6 + 8, leaf_w_,
                        58);
        const auto card_w = std::max({58, static_cast<int>(std::min<std::size_t>(name, 20)) * 7 + 14,
                                      static_cast<int>(std::min<std::size_t>(rails, 16)) * 8 + 12});
        if (detail_ == detail::cards) size_ = {card_w, with_job ? 50 : 36, 6, 12, 30, 20, 150};
        if (detail_ == detail::cells) size_ = {12, 12, 2, 10, 40, 10, 132};
        if (detail_ == detail::tiles)
            size_ = {6, 6, 1, 7, 20, 5, 44 + static_cast<int>(std::clamp<std::size_t>(name, 6, 14)) * 6};
    }

    layout run(int top) {
        layout out;
        out.shown = detail_;
        std::vector<std::pair<int, int>> extents;
        for (std::uint32_t p = 0; p < s_.spine_groups.size(); ++p) {
            out.spine_groups.push_back(design_spine_group(p, out.groups_left_out));
            extents.emplace_back(out.spine_groups.back().at.w, out.spine_groups.back().at.h);
        }
        const auto shelf = arrange_in_rows(extents, 900, 2600, gap * 2, gap * 2, detail_ != detail::tiles);
        const bool all_direct = std::all_of(out.spine_groups.begin(), out.spine_groups.end(),
                                            [](const auto& p) { return p.direct; });
        out.direct = all_direct && shelf.rows <= 1 && s_.cores.size() <= 16;
        const int tree_w = std::max(shelf.width, 0);
        out.width = std::max(tree_w + 2 * margin, 960);
        const int left = (out.width - tree_w) / 2;
        int y = top;
        if (!s_.cores.empty()) {
            out.core_bar = {left, y, tree_w, out.direct ? switch_h : switch_h + 8};
            if (out.direct)
                spread(s_.cores, out.core_bar, out.cores);
            else
                fill_bar(s_.cores, out.core_bar, out.cores);
            y = out.core_bar.bottom() + (out.direct ? 84 : shelf.rows > 1 ? 24 : 40);
        }
        out.trunk_x = left - 16;
        for (std::size_t i = 0; i < out.spine_groups.size(); ++i) {
            move(out.spine_groups[i], left + shelf.at[i].x, y + shelf.at[i].y);
            out.spine_groups[i].bus_y = y + shelf.at[i].y - gap;
        }
        out.bottom = y + shelf.height;
        return out;
    }

  private:
    static detail choose(const fabric& f) {
        if (f.hosts.size() <= 160 && f.leaf_groups.size() <= 16) return detail::cards;
        if (f.hosts.size() <= 2100 && f.leaf_groups.size() <= 64) return detail::cells;
        return detail::tiles;
    }

    group_layout design_group(std::uint32_t g) const {
        const auto& group = f_.leaf_groups[g];
        group_layout out;
        out.group = g;
        const int hosts = static_cast<int>(group.hosts.size()),
                  leaves = static_cast<int>(group.leaves.size());
        const int px = size_.cell_w + size_.pitch_gap, py = size_.cell_h + size_.pitch_gap;
        // Groups of about the usual size get its columns, so that all look alike.
        const int like = hosts * 2 > usual_hosts_ * 3 ? hosts : usual_hosts_;
        const double wide = detail_ == detail::cards ? 1.5 : detail_ == detail::cells ? 1.6 : 4.0;
        const int leaf_w = detail_ == detail::cards ? leaf_w_ : detail_ == detail::cells ? 10 : 4;
        const int least = std::max(size_.least_w, std::max(most_leaves_, leaves) * (leaf_w + 2) - 2);
        const int wanted =
            std::max(static_cast<int>(std::ceil(std::sqrt(like * wide * py / px))), least / px);
        const int per_row = even_columns(like, wanted, 512);
        const int inner = std::max(per_row * px - size_.pitch_gap, least);
        // Cards take the room that wide leaves give them.
        const int host_w =
            detail_ != detail::cards
                ? size_.cell_w
                : std::min((inner + size_.pitch_gap) / per_row - size_.pitch_gap, size_.cell_w * 8 / 5);
        const int step = host_w + size_.pitch_gap;
        const int leaf_y = size_.pad / 2 + 1, hosts_y = leaf_y + size_.leaf_h + size_.head;
        const int rows = (hosts + per_row - 1) / per_row;
        // Leaves share the whole width, in rail order.
        for (int i = 0; i < leaves; ++i) {
            const int from = inner * i / leaves, to = inner * (i + 1) / leaves;
            out.leaves.push_back({group.leaves[static_cast<std::size_t>(i)],
                                  {size_.pad + from, leaf_y, to - from - 2, size_.leaf_h}});
        }
        const int shift = (inner - (per_row * step - size_.pitch_gap)) / 2;
        for (int i = 0; i < hosts; ++i)
            out.hosts.push_back(
                {group.hosts[static_cast<std::size_t>(i)],
                 {size_.pad + shift + i % per_row * step, hosts_y + i / per_row * py, host_w, size_.cell_h}});
        out.at = {0, 0, inner + 2 * size_.pad, hosts_y + rows * py - size_.pitch_gap + size_.pad};
        return out;
    }

    spine_group_layout design_spine_group(std::uint32_t p, std::size_t& left_out) {
        const auto& spine_group = s_.spine_groups[p];
        spine_group_layout out;
        out.spine_group = p;
        std::size_t leaves = 0;
        std::vector<std::pair<int, int>> extents;
        int h = 0, w = 0;
        for (const auto g : spine_group.groups) {
            if (drawn_ >= max_groups_drawn) {
                ++left_out;
                continue;
            }
            ++drawn_;
            out.groups.push_back(design_group(g));
            leaves += out.groups.back().leaves.size();
            w = std::max(w, out.groups.back().at.w);
            h = std::max(h, out.groups.back().at.h);
        }
        for (std::size_t i = 0; i < out.groups.size(); ++i) extents.emplace_back(w, h);
        const int row_gap = detail_ == detail::tiles ? 14 : 24;
        const auto shelf = arrange_in_rows(extents, 700, 2300, detail_ == detail::tiles ? 8 : gap, row_gap,
                                           detail_ == detail::cards);
        out.direct = detail_ == detail::cards && shelf.rows == 1 && spine_group.spines.size() <= 16 &&
                     spine_group.spines.size() * leaves <= 600;
        const bool framed = s_.spine_groups.size() > 1 && !out.direct;
        const int inset = framed ? 12 : 0, trunk = shelf.rows > 1 ? 18 : 0;
        int y = inset;
        out.at.w = std::max(shelf.width + trunk, 60) + 2 * inset;
        if (!spine_group.spines.empty()) {
            const bool tiles =
                detail_ == detail::tiles;  // of which there are many, so that nothing else gets room
            out.bar = {inset, y, out.at.w - 2 * inset,
                       out.direct ? switch_h
                       : tiles    ? switch_h - 4
                                  : switch_h + 8};
            if (out.direct)
                spread(spine_group.spines, out.bar, out.spines);
            else
                fill_bar(spine_group.spines, out.bar, out.spines);
            y = out.bar.bottom() + (out.direct ? 120 : tiles ? 16 : shelf.rows > 1 ? 26 : 40);
        }
        out.trunk_x = inset + 6;
        for (std::size_t i = 0; i < out.groups.size(); ++i) {
            auto& g = out.groups[i];
            g.at.w = w;
            g.at.h = h;
            move(g, inset + trunk + shelf.at[i].x, y + shelf.at[i].y);
            g.bus_y = g.at.y - row_gap / 2;
        }
        out.at.h = y + shelf.height + inset;
        return out;
    }

    /// Switches with their names, evenly over the width of a band.
    static void spread(const std::vector<std::uint32_t>& switches, const box& band,
                       std::vector<placed>& out) {
        const int n = static_cast<int>(switches.size());
        const int w = std::clamp(band.w / n - 10, 22, 104);
        for (int i = 0; i < n; ++i) {
            const int centre = band.x + band.w * (2 * i + 1) / (2 * n);
            out.push_back({switches[static_cast<std::size_t>(i)], {centre - w / 2, band.y, w, band.h}});
        }
    }

    /// Folded: cells at the right end of a bar, as many as fit beside its text.
    static void fill_bar(const std::vector<std::uint32_t>& switches, const box& bar,
                         std::vector<placed>& out) {
        const int n = static_cast<int>(switches.size());
        const int rows = n > 64 ? 2 : 1, side = n > 64 ? 8 : 12;
        const int per_row = (n + rows - 1) / rows;
        if (per_row * (side + 2) > bar.w / 2) return;
        for (int i = 0; i < n; ++i)
            out.push_back(
                {switches[static_cast<std::size_t>(i)],
                 {bar.right() - 12 - (per_row - i % per_row) * (side + 2),
                  bar.y + (bar.h - rows * (side + 2) + 2) / 2 + i / per_row * (side + 2), side, side}});
    }

    static void shift(std::vector<placed>& list, int dx, int dy) {
        for (auto& p : list) {
            p.at.x += dx;
            p.at.y += dy;
        }
    }
    static void move(group_layout& g, int dx, int dy) {
        g.at.x += dx;
        g.at.y += dy;
        g.bus_y += dy;
        shift(g.leaves, dx, dy);
        shift(g.hosts, dx, dy);
    }
    static void move(spine_group_layout& p, int dx, int dy) {
        p.at.x += dx;
        p.at.y += dy;
        p.bar.x += dx;
        p.bar.y += dy;
        p.trunk_x += dx;
        shift(p.spines, dx, dy);
        for (auto& g : p.groups) move(g, dx, dy);
    }

    const fabric& f_;
    const scene& s_;
    detail detail_;
    sizes size_{};
    int usual_hosts_ = 1, most_leaves_ = 1, leaf_w_ = 30;
    std::size_t drawn_ = 0;
};

}  // namespace

layout lay_out(const fabric& f, const scene& s, int top, bool with_job) {
    return designer(f, s, with_job).run(top);
}

}  // namespace banyan::topo::draw
