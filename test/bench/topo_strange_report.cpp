// SPDX-License-Identifier: BSD-3-Clause
//
// The run over all strange fabrics, its table by kind, and the figures over all kinds.
#include <fmt/format.h>

#include "test/bench/topo_strange.hpp"

namespace banyan::topo::bench {
namespace {

double share(std::uint64_t part, std::uint64_t of) {
    return of == 0 ? 1 : static_cast<double>(part) / static_cast<double>(of);
}

/// Right, unknown and wrong in hundredths, or what is not perfect of it.
std::string column(const answers& a) {
    if (a.asked == 0) return "-";
    if (a.right == a.asked) return "100";
    return fmt::format("{:.2f} {:.2f}?", 100 * share(a.right, a.asked), 100 * share(a.unknown, a.asked));
}

void print_row(const std::string& kind, const strange_scores& s) {
    kind_score sum;
    for (const auto& [name, d] : s.defects) {
        sum.planted += d.of.planted;
        sum.hit += d.of.hit;
        sum.reported += d.of.reported;
        sum.right += d.of.right;
    }
    fmt::print("{:<16}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}  {:<15}{:<15}{:<15}{:<15}\n", kind, s.fabrics, s.refused,
               sum.planted, sum.planted - sum.hit, sum.reported, sum.reported - sum.right, column(s.groups),
               column(s.rails), column(s.roles), column(s.levels));
}

}  // namespace

void strange_scores::add(const strange_scores& other) {
    fabrics += other.fabrics;
    sound += other.sound;
    refused += other.refused;
    false_on_sound += other.false_on_sound;
    for (const auto& [name, d] : other.defects) {
        auto& of = defects[name];
        of.of.planted += d.of.planted;
        of.of.hit += d.of.hit;
        of.of.reported += d.of.reported;
        of.of.right += d.of.right;
        of.perhaps += d.perhaps;
    }
    groups.add(other.groups);
    rails.add(other.rails);
    roles.add(other.roles);
    levels.add(other.levels);
}

void print_strange(const std::map<std::string, strange_scores>& by_kind) {
    fmt::print("{:<16}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}  {:<15}{:<15}{:<15}{:<15}\n", "strange", "fabrics",
               "refused", "planted", "missed", "reports", "false", "groups %", "rails %", "roles %",
               "levels %");
    strange_scores all;
    for (const auto& kind : generate::kinds())
        if (const auto at = by_kind.find(std::string(kind)); at != by_kind.end()) {
            print_row(at->first, at->second);
            all.add(at->second);
        }
    print_row("all", all);
    fmt::print("\n{:<17}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "defect", "planted", "missed", "reports", "false",
               "perhaps");
    for (const auto& [name, d] : all.defects)
        fmt::print("{:<17}{:>9}{:>9}{:>9}{:>9}{:>9}\n", name, d.of.planted, d.of.planted - d.of.hit,
                   d.of.reported, d.of.reported - d.of.right, d.perhaps);
    fmt::print("\n");
}

void add_strange(banyan::bench::figures& figures, const strange_scores& all) {
    const auto of = fmt::format("{} strange fabrics, ", all.fabrics);
    std::uint64_t others = 0, perhaps = 0, reported = 0;
    for (const auto& [name, d] : all.defects) {
        perhaps += d.perhaps;
        reported += d.of.reported;
        if (d.of.planted == 0) {
            others += d.of.reported;
            continue;
        }
        if (d.of.reported > 0)  // of no report nobody can say how precise it is
            figures.add(of + name + ", precision", share(d.of.right, d.of.reported), "share",
                        "planted defects", ">=", 0.99);
        figures.add(of + name + ", recall", share(d.of.hit, d.of.planted), "share", "planted defects",
                    ">=", 0.99);
    }
    figures.add(of + "reports of kinds that are never planted", static_cast<double>(others), "reports",
                "planted defects", "<=", 0);
    figures.add(of + "false reports on the sound ones", static_cast<double>(all.false_on_sound), "reports",
                "truth", "<=", 0);
    figures.add(of + "dumps refused", static_cast<double>(all.refused), "dumps", "-", "<=", 0);
    answers every;
    const std::pair<const char*, const answers*> each[]{{"hosts in their leaf group", &all.groups},
                                                        {"HCAs on their rail", &all.rails},
                                                        {"HCAs in their role", &all.roles},
                                                        {"switches at their level", &all.levels}};
    for (const auto& [name, a] : each) {
        figures.add(of + name, 100 * share(a->right, a->asked), "%", "truth", ">=", 99);
        every.add(*a);
    }
    figures.add(of + "answers \"unknown\"",
                100 * share(every.unknown + perhaps, every.asked + perhaps + reported), "%", "truth",
                "<=", 1);
    figures.add(of + "answers that are wrong", 100 * share(every.wrong(), every.asked), "%", "truth",
                "<=", 0.1);
}

bool measure_strange(banyan::bench::figures& figures, std::uint64_t first, std::uint64_t count, bool verbose,
                     bool table) {
    std::map<std::string, strange_scores> by_kind;
    for (auto seed = first; seed < first + count; ++seed) {
        const auto s = strange_of(seed);
        const auto made = s ? generate::generate(s->o) : std::unexpected(s.error());
        if (!made) {
            fmt::print(stderr, "topo_bench: strange seed {} ({}): {}\n", seed, s ? s->kind : "",
                       made.error().text());
            return false;
        }
        const auto label = fmt::format("strange seed {} ({})", seed, s->kind);
        const auto d = read_ibnetdiscover(made->text);
        if (!d && verbose) fmt::print("{}: refused: {}\n", label, d.error().what);
        const auto f = d ? build_fabric(*d) : fabric{};
        score_strange(by_kind[s->kind], f, !d, made->facts, label, verbose);
    }
    if (count == 0) return true;
    strange_scores all;
    for (const auto& [kind, s] : by_kind) all.add(s);
    if (table) print_strange(by_kind);
    add_strange(figures, all);
    return true;
}

}  // namespace banyan::topo::bench
