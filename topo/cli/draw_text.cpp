// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric and a job on it as a picture of characters.
#include "topo/cli/draw_text.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/color.h>
#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/draw/escape.hpp"
#include "topo/draw/scene.hpp"

namespace banyan::topo::cli {
namespace {

class picture {
  public:
    picture(const fabric& f, const draw::job* j, bool color) : f_(f), color_(color) {
        if (!j) return;
        job_ = j->text;
        for (const auto& m : j->marks) marks_[m.host] = &m;
    }

    std::string text() {
        add_spines();
        if (marks_.empty() && f_.leaf_groups.size() > boxes_shown)
            add_rows();
        else
            add_boxes();
        add_legend();
        return std::move(out_);
    }

  private:
    static constexpr std::size_t columns = 98;
    static constexpr std::size_t cells_shown = 64;  // of a large group without a job; the rest is counted
    static constexpr std::size_t boxes_shown = 4;   // of groups without hosts of the job

    void add_spines() {
        std::size_t spines = 0, cores = 0;
        for (const auto& s : f_.switches) {
            spines += s.level == 1;
            cores += s.level == 2;
        }
        if (cores) add("{:^{}}\n", fmt::format("[ {} ]", counted(cores, "core")), columns);
        if (spines) {
            add("{:^{}}\n", fmt::format("[ {} ]", counted(spines, "spine")), columns);
            add("{:^{}}\n", "|", columns);
        }
    }

    /// What a terminal may be shown of a name from the wire.
    std::string name(std::uint32_t host) const { return draw::clean(f_.hosts[host].name); }

    std::string cell(std::uint32_t host, std::size_t width) const {
        const auto at = marks_.find(host);
        const auto text =
            at == marks_.end() ? name(host) : fmt::format("{} {}", name(host), at->second->label);
        const auto padded = draw::fill(text, width);
        if (!color_) return at == marks_.end() ? " " + padded + " " : "[" + padded + "]";
        if (at == marks_.end())
            return fmt::format(fmt::fg(fmt::terminal_color::bright_black), " {} ", padded);
        static constexpr fmt::terminal_color palette[] = {
            fmt::terminal_color::green, fmt::terminal_color::cyan,         fmt::terminal_color::magenta,
            fmt::terminal_color::blue,  fmt::terminal_color::bright_green, fmt::terminal_color::bright_cyan};
        const auto shade =
            at->second->spare ? fmt::terminal_color::yellow : palette[at->second->color % std::size(palette)];
        return fmt::format(fmt::fg(shade) | fmt::emphasis::bold, "[{}]", padded);
    }

    std::string first_to_last(const leaf_group& g, std::size_t width) const {
        if (g.hosts.empty()) return "none";
        const auto last = g.hosts.size() > 1 ? " \u2013 " + name(g.hosts.back()) : "";
        return draw::fill(draw::fit(name(g.hosts.front()) + last, width), width);
    }

    /// A line for each group: what a box of it would not have room for.
    void add_rows() {
        const auto defects = draw::make_scene(f_).defects_of_group;
        std::size_t id = 5, names = 5;
        for (const auto& g : f_.leaf_groups) {
            id = std::max(id, g.id.size());
            if (!g.hosts.empty())
                names = std::max(
                    names, draw::columns(name(g.hosts.front())) + 3 + draw::columns(name(g.hosts.back())));
        }
        names = std::min(names, columns - 50);
        add("{:<{}}  {:>6}  {:<{}}  {:>6}  {:>11}  {:>7}\n", "group", id, "hosts", "names", names, "leaves",
            "spine group", "defects");
        for (std::size_t i = 0; i < f_.leaf_groups.size(); ++i) {
            const auto& g = f_.leaf_groups[i];
            add("{:<{}}  {:>6}  {}  {:>6}  {:>11}  {:>7}\n", g.id, id, g.hosts.size(),
                draw::fill(first_to_last(g, names), names), g.leaves.size(), g.spine_group + 1,
                defects[i] ? std::to_string(defects[i]) : "-");
        }
    }

    std::size_t used(const leaf_group& g) const {
        return static_cast<std::size_t>(
            std::count_if(g.hosts.begin(), g.hosts.end(), [&](auto h) { return marks_.contains(h); }));
    }

    /// Groups that the job does not touch are one line for each row of them where there are many.
    void add_boxes() {
        const auto& groups = f_.leaf_groups;
        const bool fold = groups.size() > boxes_shown;
        for (std::size_t i = 0; i < groups.size();) {
            if (!fold || used(groups[i]) > 0) {
                add_group(groups[i++]);
                continue;
            }
            const auto first = i;
            std::size_t hosts = 0;
            for (; i < groups.size() && used(groups[i]) == 0; ++i) hosts += groups[i].hosts.size();
            add("  {}{}: {}, none of the job\n", groups[first].id,
                i - first > 1 ? fmt::format(" \u2013 {}, {} groups", groups[i - 1].id, i - first) : "",
                draw::counted(hosts, "host"));
        }
    }

    void add_group(const leaf_group& g) {
        const auto used = this->used(g);
        std::size_t width = 0;
        for (const auto h : g.hosts) {
            const auto at = marks_.find(h);
            width = std::max(
                width, draw::columns(name(h)) + (at == marks_.end() ? 0 : at->second->label.size() + 1));
        }
        const auto title = fmt::format("- {}: {}{}{} ", g.id, counted(g.hosts.size(), "host"),
                                       f_.untold.rails ? "" : " x " + counted(g.leaves.size(), "rail"),
                                       marks_.empty() ? "" : fmt::format(", {} of the job", used));
        add("+{:-<{}}+\n", title, columns - 2);
        const auto per_row = std::max<std::size_t>(1, (columns - 4) / (width + 2));
        const auto shown = used ? g.hosts.size() : std::min(g.hosts.size(), cells_shown);
        for (std::size_t i = 0; i < shown; i += per_row) {
            const auto row = std::min(per_row, shown - i);
            std::string line;
            for (std::size_t j = i; j < i + row; ++j) line += cell(g.hosts[j], width);
            add("| {}{:<{}} |\n", line, "", columns - 4 - row * (width + 2));
        }
        if (shown < g.hosts.size())
            add("| {:<{}} |\n", fmt::format("... and {} more", g.hosts.size() - shown), columns - 4);
        add("+{:-<{}}+\n", "", columns - 2);
    }

    void add_legend() {
        if (!job_.empty()) add("{}\n", job_);
        if (std::any_of(marks_.begin(), marks_.end(),
                        [](const auto& m) { return m.second->label.size() < 5 && m.second->label != "job"; }))
            add("A0: pipeline unit A, slot 0; the slots of a unit exchange activations, best in one leaf "
                "group\n");
    }

    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }

    const fabric& f_;
    std::unordered_map<std::uint32_t, const draw::job_mark*> marks_;
    bool color_;
    std::string job_, out_;
};

}  // namespace

std::string text_picture(const fabric& f, const draw::job* j, bool color) {
    return picture(f, j, color).text();
}

}  // namespace banyan::topo::cli
