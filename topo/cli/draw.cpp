// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric and a job on it as a picture of characters, at most 100 columns wide.
#include <algorithm>
#include <memory>
#include <unordered_map>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/plan.hpp>
#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/text.hpp"
#include "topo/cli/cli.hpp"

namespace banyan::topo::cli {
namespace {

struct options {
    std::string input, nodes, shape, plan, color = "auto";
    std::uint32_t spares = 0;
};

/// What a cell shows of a host beside its name.
struct mark {
    std::string text;      // "A0": unit A, slot 0; "spare"; "job"
    std::size_t unit = 0;  // decides the colour
    bool spare = false;
};
using marks = std::unordered_map<std::uint32_t, mark>;

/// Slots and spares by name, with the letter of each slot's unit.
result<void> mark_slots(const fabric& f, const request& r, const std::vector<std::uint32_t>& nodes,
                        const std::vector<std::uint32_t>& spares, marks& out) {
    const auto units = units_of_slots(r);
    if (units.size() != nodes.size()) return fail(errc::internal, "slots and nodes differ");
    for (std::size_t slot = 0; slot < nodes.size(); ++slot)
        if (nodes[slot] < f.hosts.size())
            out[nodes[slot]] = {fmt::format("{}{}", static_cast<char>('A' + units[slot] % 26), slot),
                                units[slot], false};
    for (const auto host : spares)
        if (host < f.hosts.size()) out[host] = {"spare", 0, true};
    return {};
}

result<marks> marks_from(const fabric& f, const options& o) {
    marks out;
    if (!o.plan.empty()) {
        BANYAN_TRY(const auto plan, parse_plan(o.plan));
        BANYAN_TRY(const auto dims, parse_shape(plan.shape));
        BANYAN_TRY(const auto r,
                   make_request(dims, static_cast<std::uint32_t>(plan.nodes.size()), plan.ranks_per_node, 0));
        std::vector<std::uint32_t> nodes, spares;
        for (const auto& name : plan.nodes) nodes.push_back(find_host(f, name));
        for (const auto& name : plan.spares) spares.push_back(find_host(f, name));
        BANYAN_CHECK(mark_slots(f, r, nodes, spares, out));
    } else if (!o.nodes.empty()) {
        BANYAN_TRY(const auto hosts, hosts_from(f, o.nodes));
        for (const auto host : hosts) out[host] = {"job", 0, false};
        if (!o.shape.empty()) {
            BANYAN_TRY(const auto dims, parse_shape(o.shape));
            BANYAN_TRY(const auto r,
                       make_request(dims, static_cast<std::uint32_t>(hosts.size()), 0, o.spares));
            BANYAN_TRY(const auto p, place(f, hosts, r));
            BANYAN_CHECK(mark_slots(f, r, p.nodes, p.spares, out));
        }
    }
    return out;
}

class picture {
  public:
    picture(const fabric& f, const marks& m, bool color) : f_(f), marks_(m), color_(color) {}

    void print() const {
        print_spines();
        for (const auto& g : f_.leaf_groups) print_group(g);
        print_legend();
    }

  private:
    static constexpr std::size_t columns = 98;
    static constexpr std::size_t cells_shown = 64;  // of a large group without a job; the rest is counted

    void print_spines() const {
        std::size_t spines = 0, cores = 0;
        for (const auto& s : f_.switches) {
            spines += s.level == 1;
            cores += s.level == 2;
        }
        if (cores) fmt::print("{:^{}}\n", fmt::format("[ {} cores ]", cores), columns);
        if (spines) {
            fmt::print("{:^{}}\n", fmt::format("[ {} spines ]", spines), columns);
            fmt::print("{:^{}}\n", "|", columns);
        }
    }

    std::string cell(std::uint32_t host, std::size_t width) const {
        const auto at = marks_.find(host);
        const auto text = at == marks_.end() ? f_.hosts[host].name
                                             : fmt::format("{} {}", f_.hosts[host].name, at->second.text);
        const auto padded = fmt::format("{:<{}}", text, width);
        if (!color_) return at == marks_.end() ? " " + padded + " " : "[" + padded + "]";
        if (at == marks_.end())
            return fmt::format(fmt::fg(fmt::terminal_color::bright_black), " {} ", padded);
        static constexpr fmt::terminal_color palette[] = {
            fmt::terminal_color::green, fmt::terminal_color::cyan,         fmt::terminal_color::magenta,
            fmt::terminal_color::blue,  fmt::terminal_color::bright_green, fmt::terminal_color::bright_cyan};
        const auto shade =
            at->second.spare ? fmt::terminal_color::yellow : palette[at->second.unit % std::size(palette)];
        return fmt::format(fmt::fg(shade) | fmt::emphasis::bold, "[{}]", padded);
    }

    void print_group(const leaf_group& g) const {
        const auto used =
            std::count_if(g.hosts.begin(), g.hosts.end(), [&](auto h) { return marks_.contains(h); });
        std::size_t width = 0;
        for (const auto h : g.hosts) {
            const auto at = marks_.find(h);
            width = std::max(width,
                             f_.hosts[h].name.size() + (at == marks_.end() ? 0 : at->second.text.size() + 1));
        }
        const auto title = fmt::format("- {}: {} hosts x {} rails{} ", g.id, g.hosts.size(), g.leaves.size(),
                                       marks_.empty() ? "" : fmt::format(", {} of the job", used));
        fmt::print("+{:-<{}}+\n", title, columns - 2);
        // Groups that the job does not touch fold to their title when there are many.
        const bool folded = used == 0 && f_.leaf_groups.size() > 4;
        const auto per_row = std::max<std::size_t>(1, (columns - 4) / (width + 2));
        const auto shown = folded ? 0 : used ? g.hosts.size() : std::min(g.hosts.size(), cells_shown);
        for (std::size_t i = 0; i < shown; i += per_row) {
            const auto row = std::min(per_row, shown - i);
            std::string line;
            for (std::size_t j = i; j < i + row; ++j) line += cell(g.hosts[j], width);
            fmt::print("| {}{:<{}} |\n", line, "", columns - 4 - row * (width + 2));
        }
        if (!folded && shown < g.hosts.size())
            fmt::print("| {:<{}} |\n", fmt::format("... and {} more", g.hosts.size() - shown), columns - 4);
        fmt::print("+{:-<{}}+\n", "", columns - 2);
    }

    void print_legend() const {
        if (std::any_of(marks_.begin(), marks_.end(),
                        [](const auto& m) { return m.second.text.size() < 5 && m.second.text != "job"; }))
            fmt::print(
                "A0: pipeline unit A, slot 0; the slots of a unit exchange activations and share a leaf "
                "group\n");
    }

    const fabric& f_;
    const marks& marks_;
    bool color_;
};

}  // namespace

void add_draw(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand("draw", "Draw the fabric, and a job's nodes on it");
    sub->add_option("FABRIC", o->input, "output of ibnetdiscover, or a snapshot")->required();
    sub->add_option("--nodes", o->nodes, "host list of a job's nodes");
    sub->add_option("--shape", o->shape, "its parallel dimensions: marks the slot of each node");
    sub->add_option("--spares", o->spares, "how many of its nodes are spares");
    sub->add_option("--plan", o->plan, "a job's plan (BANYAN_PLAN in its prolog's environment)");
    sub->add_option("--color", o->color, "auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto f, load_fabric(o->input));
            BANYAN_TRY(const auto m, marks_from(f, *o));
            picture(f, m, o->color == "always" || (o->color == "auto" && ::isatty(1))).print();
            return fine;
        };
    });
}

}  // namespace banyan::topo::cli
