// SPDX-License-Identifier: BSD-3-Clause
//
// Lines of the SVG. Where there is room each bundle is a curve; else each group has one stub, which is
// painted where each of its switches has lost something: one lost link is its switch's, not its group's.
#include <algorithm>

#include <fmt/format.h>

#include "topo/draw/palette.hpp"
#include "topo/draw/svg.hpp"

namespace banyan::topo::draw::svg {
namespace {

struct line {
    int x1, y1, x2, y2;  // the upper end first
    const bundle* b;
};

/// All links of a folded part towards what is above it.
struct uplinks {
    std::uint32_t links = 0;
    link_rate rate;
    health state = health::good;
};

const char* color_of(health state, const link_rate& rate) {
    return state == health::good ? rate_color(rate) : health_color(state);
}

class lines {
  public:
    explicit lines(context& c) : c_(c), box_of_(c.f.switches.size(), nullptr), order_(c.f.switches.size()) {
        for (const auto& p : c.at.spine_groups) {
            std::size_t leaf = 0, leaves = 0;
            for (const auto& g : p.groups) leaves += g.leaves.size();
            for (const auto& g : p.groups)
                for (const auto& l : g.leaves) {
                    if (p.direct) box_of_[l.index] = &l.at;
                    order_[l.index] = {leaf++, leaves};
                }
            for (std::size_t i = 0; i < p.spines.size(); ++i) {
                if (p.direct) box_of_[p.spines[i].index] = &p.spines[i].at;
                order_[p.spines[i].index] = {i, p.spines.size()};
            }
        }
        if (c.at.direct)
            for (const auto& core : c.at.cores) box_of_[core.index] = &core.at;
    }

    void write() {
        if (c_.at.spine_groups.size() > 1)
            for (const auto& p : c_.at.spine_groups)
                if (!p.direct)
                    fmt::format_to(std::back_inserter(c_.out),
                                   "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"10\" "
                                   "class=\"spine-group\"/>\n",
                                   p.at.x, p.at.y, p.at.w, p.at.h);
        write_direct();
        for (const auto& p : c_.at.spine_groups)
            if (!p.direct && p.bar.h) write_bus(p);
        if (!c_.at.direct && c_.at.core_bar.h) write_core_bus();
    }

  private:
    void stroke(const std::string& path, const char* color, double width, const char* more) {
        fmt::format_to(std::back_inserter(c_.out),
                       "<path class=\"l\" d=\"{}\" stroke=\"{}\" stroke-width=\"{:.1f}\"{}/>\n", path, color,
                       width, more);
    }

    void write_direct() {
        std::vector<line> all;
        for (const auto& b : c_.s.bundles) {
            const auto* low = box_of_[b.low];
            const auto* high = box_of_[b.high];
            if (!low || !high || low->y <= high->y) continue;
            // Lines reach an upper switch in the order of the lower ones, so they fan out instead of
            // crossing.
            const auto [at, of] = order_[b.low];
            const int inner = high->w - 12;
            const int x =
                high->x + 6 + static_cast<int>(static_cast<std::size_t>(inner) * (2 * at + 1) / (2 * of));
            all.push_back({x, high->bottom(), low->cx(), low->y, &b});
        }
        std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.b->state < b.b->state; });
        for (const auto& l : all) {
            const int bend = (l.y2 - l.y1) / 2;
            const auto path = fmt::format("M{} {}C{} {} {} {} {} {}", l.x1, l.y1, l.x1, l.y1 + bend, l.x2,
                                          l.y2 - bend, l.x2, l.y2);
            const bool good = l.b->state == health::good;
            stroke(path, color_of(l.b->state, l.b->rate), (good ? 1.0 : 1.8) + std::min(l.b->count, 8u) * 0.1,
                   l.b->count == 0 ? " stroke-dasharray=\"4 4\""
                   : good          ? " opacity=\"0.55\""
                                   : "");
        }
        for (const auto& l : all)
            if (l.b->state != health::good) write_label(l);
    }

    /// What is odd about a bundle, near its lower end; left out where it would cover another.
    void write_label(const line& l) {
        const auto text = l.b->count != l.b->usual ? fmt::format("{} of {}", l.b->count, l.b->usual)
                                                   : fmt::format("{}G", speed(l.b->rate));
        const int w = static_cast<int>(text.size()) * 6 + 8;
        for (const double t : {0.72, 0.62, 0.52, 0.42}) {
            // The curve of write_direct at t.
            const double s = 1 - t;
            const int x =
                static_cast<int>(l.x1 * (s * s * s + 3 * s * s * t) + l.x2 * (3 * s * t * t + t * t * t));
            const double mid = (l.y1 + l.y2) / 2.0;
            const int y =
                static_cast<int>(l.y1 * s * s * s + mid * (3 * s * s * t + 3 * s * t * t) + l.y2 * t * t * t);
            const box at{x - w / 2, y - 7, w, 14};
            if (std::any_of(labels_.begin(), labels_.end(), [&](const box& o) {
                    return at.x < o.right() && o.x < at.right() && at.y < o.bottom() && o.y < at.bottom();
                }))
                continue;
            labels_.push_back(at);
            fmt::format_to(
                std::back_inserter(c_.out),
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\" rx=\"7\" fill=\"#fafaf8\" stroke=\"{}\"/>"
                "<text x=\"{}\" y=\"{}\" class=\"x mid\">{}</text>\n",
                at.x, at.y, w, health_color(l.b->state), x, y + 3, text);
            return;
        }
    }

    uplinks above(const std::vector<std::uint32_t>& switches) const {
        uplinks out;
        bool all = !switches.empty();
        for (const auto sw : switches) {
            auto at = std::lower_bound(c_.s.bundles.begin(), c_.s.bundles.end(), sw,
                                       [](const bundle& b, std::uint32_t low) { return b.low < low; });
            auto worst = health::good;
            for (; at != c_.s.bundles.end() && at->low == sw; ++at) {
                if (out.links == 0 || speed(at->rate) > speed(out.rate)) out.rate = at->rate;
                out.links += at->count;
                worst = std::max(worst, at->state);
            }
            all = all && worst != health::good;
            out.state = std::max(out.state, worst);
        }
        if (!all) out.state = health::good;
        return out;
    }

    void stub(int x, int y1, int y2, const uplinks& up) {
        if (up.links == 0) return;
        stroke(fmt::format("M{} {}V{}", x, y1, y2), color_of(up.state, up.rate),
               up.state == health::good ? 1.4 : 2.2, "");
    }

    void write_bus(const spine_group_layout& p) {
        if (p.groups.empty()) return;
        const bool rows = p.groups.front().at.y != p.groups.back().at.y;
        link_rate rate;
        std::vector<uplinks> ups;
        for (const auto& g : p.groups) {
            ups.push_back(above(c_.f.leaf_groups[g.group].leaves));
            if (speed(ups.back().rate) > speed(rate)) rate = ups.back().rate;
        }
        if (rows) write_trunk(p, rate);
        for (std::size_t i = 0; i < p.groups.size(); ++i)
            stub(p.groups[i].at.cx(), rows ? p.groups[i].bus_y : p.bar.bottom(), p.groups[i].at.y, ups[i]);
    }

    void write_trunk(const spine_group_layout& p, const link_rate& rate) {
        auto path = fmt::format("M{} {}V{}", p.trunk_x, p.bar.bottom(), p.groups.back().bus_y);
        for (std::size_t i = 0; i < p.groups.size(); ++i)
            if (i + 1 == p.groups.size() || p.groups[i + 1].bus_y != p.groups[i].bus_y)
                path += fmt::format("M{} {}H{}", p.trunk_x, p.groups[i].bus_y, p.groups[i].at.cx());
        stroke(path, rate_color(rate), 1.4, " opacity=\"0.6\"");
    }

    void write_core_bus() {
        if (c_.at.spine_groups.empty()) return;
        const bool rows = c_.at.spine_groups.front().at.y != c_.at.spine_groups.back().at.y;
        if (rows) {
            auto path = fmt::format("M{} {}H{}V{}", c_.at.core_bar.x, c_.at.core_bar.y + c_.at.core_bar.h / 2,
                                    c_.at.trunk_x, c_.at.spine_groups.back().bus_y);
            for (std::size_t i = 0; i < c_.at.spine_groups.size(); ++i)
                if (i + 1 == c_.at.spine_groups.size() ||
                    c_.at.spine_groups[i + 1].bus_y != c_.at.spine_groups[i].bus_y)
                    path += fmt::format("M{} {}H{}", c_.at.trunk_x, c_.at.spine_groups[i].bus_y,
                                        c_.at.spine_groups[i].at.cx());
            stroke(path, "#a3afb8", 1.4, "");
        }
        for (const auto& p : c_.at.spine_groups)
            stub(p.at.cx(), rows ? p.bus_y : c_.at.core_bar.bottom(), p.at.y,
                 above(c_.s.spine_groups[p.spine_group].spines));
    }

    context& c_;
    std::vector<const box*> box_of_;
    std::vector<std::pair<std::size_t, std::size_t>>
        order_;  // position among the lower switches, and their number
    std::vector<box> labels_;
};

}  // namespace

void write_links(context& c) { lines(c).write(); }

}  // namespace banyan::topo::draw::svg
