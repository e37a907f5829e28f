// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric and a job on it as a picture of characters.
#include "topo/cli/draw_text.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/color.h>
#include <fmt/format.h>

#include "topo/draw/escape.hpp"

namespace banyan::topo::cli {
namespace {

class picture {
  public:
    picture(const fabric& f, const draw::job* j, bool color) : f_(f), color_(color) {
        if (j)
            for (const auto& m : j->marks) marks_[m.host] = &m;
    }

    std::string text() {
        add_spines();
        for (const auto& g : f_.leaf_groups) add_group(g);
        add_legend();
        return std::move(out_);
    }

  private:
    static constexpr std::size_t columns = 98;
    static constexpr std::size_t cells_shown = 64;  // of a large group without a job; the rest is counted

    void add_spines() {
        std::size_t spines = 0, cores = 0;
        for (const auto& s : f_.switches) {
            spines += s.level == 1;
            cores += s.level == 2;
        }
        if (cores) add("{:^{}}\n", fmt::format("[ {} cores ]", cores), columns);
        if (spines) {
            add("{:^{}}\n", fmt::format("[ {} spines ]", spines), columns);
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

    void add_group(const leaf_group& g) {
        const auto used =
            std::count_if(g.hosts.begin(), g.hosts.end(), [&](auto h) { return marks_.contains(h); });
        std::size_t width = 0;
        for (const auto h : g.hosts) {
            const auto at = marks_.find(h);
            width = std::max(
                width, draw::columns(name(h)) + (at == marks_.end() ? 0 : at->second->label.size() + 1));
        }
        const auto title = fmt::format("- {}: {} hosts x {} rails{} ", g.id, g.hosts.size(), g.leaves.size(),
                                       marks_.empty() ? "" : fmt::format(", {} of the job", used));
        add("+{:-<{}}+\n", title, columns - 2);
        // Groups that the job does not touch fold to their title when there are many.
        const bool folded = used == 0 && f_.leaf_groups.size() > 4;
        const auto per_row = std::max<std::size_t>(1, (columns - 4) / (width + 2));
        const auto shown = folded ? 0 : used ? g.hosts.size() : std::min(g.hosts.size(), cells_shown);
        for (std::size_t i = 0; i < shown; i += per_row) {
            const auto row = std::min(per_row, shown - i);
            std::string line;
            for (std::size_t j = i; j < i + row; ++j) line += cell(g.hosts[j], width);
            add("| {}{:<{}} |\n", line, "", columns - 4 - row * (width + 2));
        }
        if (!folded && shown < g.hosts.size())
            add("| {:<{}} |\n", fmt::format("... and {} more", g.hosts.size() - shown), columns - 4);
        add("+{:-<{}}+\n", "", columns - 2);
    }

    void add_legend() {
        if (std::any_of(marks_.begin(), marks_.end(),
                        [](const auto& m) { return m.second->label.size() < 5 && m.second->label != "job"; }))
            add("A0: pipeline unit A, slot 0; the slots of a unit exchange activations and share a leaf "
                "group\n");
    }

    template <class... Args>
    void add(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }

    const fabric& f_;
    std::unordered_map<std::uint32_t, const draw::job_mark*> marks_;
    bool color_;
    std::string out_;
};

}  // namespace

std::string text_picture(const fabric& f, const draw::job* j, bool color) {
    return picture(f, j, color).text();
}

}  // namespace banyan::topo::cli
