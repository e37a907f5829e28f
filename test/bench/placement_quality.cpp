// SPDX-License-Identifier: BSD-3-Clause
//
// quality_bench: how good banyan's placements are beside what a cluster gets otherwise, on the same free
// nodes. Free nodes are what a seeded day of jobs leaves that a plain best fit placed; banyan had no part in
// them. Prints tables, or with --json FILE the list of figures; --verbose names each case that a peer won.
#include "test/bench/placement_quality.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"

namespace banyan::topo::quality {
namespace {

enum method { ours, by_name, tree, tree_emu, block, chance, methods };
constexpr const char* method_names[methods] = {"banyan",          "name order", "tree",
                                               "tree (emulated)", "block",      "random"};
constexpr double rounding = 1e-9;        ///< of sums in different orders
constexpr double infinite_ratio = 1000;  ///< stands for a peer that needs no byte where banyan needs some

struct outcome {
    const test_case* c = nullptr;
    std::string shape;
    std::array<std::optional<verdict>, methods> by;
    std::optional<double> bound;
    double counted = 0;  ///< counted_bound
    const char* best = "";
    double best_peer = 0;

    double ratio() const {
        const auto mine = by[ours]->sent.weighted;
        if (best_peer <= 0) return mine > 0 ? infinite_ratio : 1;
        const auto out = mine / best_peer;
        return std::abs(out - 1) <= rounding ? 1 : out;
    }
    /// Per cent over the oracle's bound.
    double gap() const {
        const auto mine = by[ours]->sent.weighted;
        return 100 * (*bound > 0 ? mine / *bound - 1 : mine > 0 ? infinite_ratio : 0);
    }
};

const char* weights_name(bool model) { return model ? "bytes of a 70B model" : "default weights"; }

outcome evaluate(const site& s, const test_case& c, const test::every_rank& job,
                 const std::optional<hosts>& from_tree, const std::optional<hosts>& from_block) {
    outcome o;
    o.c = &c;
    o.shape = c.job.dims.text();
    const auto put = [&](method m, const placement& p) { o.by[m] = judge(s, c, job, p); };
    put(ours, place(s.net, c.free, c.job).value());
    put(by_name, in_order({c.free.begin(), c.free.begin() + c.job.nodes}));
    put(chance, in_order(random_nodes(c.free, c.job.nodes, c.seed)));
    put(tree_emu, in_order(tree_emulated(s, c.free, c.job.nodes)));
    if (from_tree) put(tree, in_order(*from_tree));
    if (from_block) put(block, in_order(*from_block));
    return o;
}

/// The best of the peers. The emulation counts where no slurmctld answered.
void compare(outcome& o) {
    o.best_peer = -1;
    for (const auto m : {by_name, tree, tree_emu, block, chance}) {
        if (!o.by[m] || (m == tree_emu && o.by[tree])) continue;
        if (o.best_peer >= 0 && o.by[m]->sent.weighted >= o.best_peer) continue;
        o.best_peer = o.by[m]->sent.weighted;
        o.best = method_names[m];
    }
}

struct means {
    double sum = 0, worst = 0;
    int count = 0;
    void add(double x) {
        sum += x;
        worst = count == 0 ? x : std::max(worst, x);
        ++count;
    }
    double mean() const { return count ? sum / count : 0; }
};

/// A bound that a placement is below proves nothing but that it is wrong.
[[noreturn]] void figures_wrong(const site& s, const outcome& o) {
    fmt::print(stderr, "quality_bench: {} on {}: the bound {} is above a placement of {}\n", o.shape, s.name,
               o.counted, o.by[ours]->sent.weighted);
    std::abort();
}

void tell(const site& s, const outcome& o) {
    std::vector<std::string> names;
    for (const auto h : o.c->free) names.push_back(s.net.hosts[h].name);
    fmt::print("ratio {:.4f} by {}: {}, {:.0f} % occupied, seed {}, {}, {} nodes; {} is better\n", o.ratio(),
               weights_name(o.c->job.model.has_value()), s.name, 100 * o.c->occupied, o.c->seed, o.shape,
               o.c->job.nodes, o.best);
    std::vector<std::uint32_t> left(s.net.leaf_groups.size());
    for (const auto h : o.c->free) ++left[s.net.hosts[h].leaf_group];
    fmt::print("  free by leaf group {}\n  free {}\n", fmt::join(left, " "), compress_hostlist(names));
    for (int m = 0; m < methods; ++m)
        if (const auto& v = o.by[m])
            fmt::print("  {:<19} weighted {:.4g} above leaf {:.4g} core {:.4g} straddling {}/{} spread {}\n",
                       method_names[m], v->sent.weighted, v->sent.above_leaf(), v->sent.core(),
                       v->sent.straddling, v->sent.units, v->sent.spread);
    if (o.bound) fmt::print("  {:<19} weighted {:.4g}\n", "oracle's bound", *o.bound);
}

/// Means over the cases that every method answered.
void print_methods(const std::deque<outcome>& all, bool with_block, bool model) {
    fmt::print(
        "\nBy the {}: means over the cases (weighted: each byte above the leaf by what its tier costs; GB a "
        "step)\n",
        weights_name(model));
    fmt::print("{:<20}{:>6}{:>11}{:>11}{:>10}{:>12}{:>11}{:>9}{:>9}\n", "method", "cases", "weighted",
               "above leaf", "core", "busiest up", "straddling", "spread", "wasted");
    for (int m = 0; m < methods; ++m) {
        means weighted, above, core, up, straddling, spread, wasted;
        for (const auto& o : all) {
            const auto& v = o.by[m];
            if (!v || (with_block && !o.by[block]) || o.c->job.model.has_value() != model) continue;
            weighted.add(v->sent.weighted / 1e9);
            above.add(v->sent.above_leaf() / 1e9);
            core.add(v->sent.core() / 1e9);
            up.add(v->busiest_uplink / 1e9);
            straddling.add(100.0 * v->sent.straddling / v->sent.units);
            spread.add(v->sent.spread);
            wasted.add(v->wasted);
        }
        if (weighted.count == 0) continue;
        fmt::print("{:<20}{:>6}{:>11.0f}{:>11.0f}{:>10.0f}{:>12.2f}{:>9.1f} %{:>9.0f}{:>9.2f}\n",
                   method_names[m], weighted.count, weighted.mean(), above.mean(), core.mean(), up.mean(),
                   straddling.mean(), spread.worst, wasted.mean());
    }
}

void summarise(banyan::bench::figures& figures, const std::vector<site>& sites,
               const std::deque<outcome>& all, bool table, bool model) {
    const std::string name = weights_name(model);
    if (table)
        fmt::print(
            "\nBy the {}: banyan / the best peer, and over the oracle's bound\n"
            "{:<30}{:>7}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}\n",
            name, "fabric", "cases", "mean", "worst", "lost", "equal", "oracle", "gap", "worst");
    means everywhere, gap_everywhere, bounded, least, possible, sending;
    for (std::size_t s = 0; s < sites.size(); ++s) {
        means ratio, gap;
        int lost = 0, equal = 0;
        for (const auto& o : all) {
            if (o.c->site != s || o.c->job.model.has_value() != model) continue;
            ratio.add(o.ratio());
            everywhere.add(o.ratio());
            if (o.best_peer > 0) sending.add(o.ratio());
            possible.add(o.best_peer > 0 ? std::min(1.0, o.counted / o.best_peer) : o.ratio());
            lost += o.ratio() > 1;
            equal += o.ratio() == 1;
            if (!o.bound) continue;
            gap.add(o.gap());
            gap_everywhere.add(o.gap());
            if (o.best_peer <= 0) continue;
            bounded.add(o.ratio());
            least.add(*o.bound / o.best_peer);
        }
        if (table)
            fmt::print("{:<30}{:>7}{:>8.3f}{:>8.3f}{:>8}{:>8}{:>9}{:>6.1f} %{:>8.1f} %\n", sites[s].name,
                       ratio.count, ratio.mean(), ratio.worst, lost, equal, gap.count, gap.mean(), gap.worst);
        figures.add(fmt::format("{}: mean, {}", name, sites[s].name), ratio.mean(), "x", "best peer");
        figures.add(fmt::format("{}: worst, {}", name, sites[s].name), ratio.worst, "x", "best peer",
                    "<=", 1);
    }
    figures.add(name + ": mean, all fabrics", everywhere.mean(), "x", "best peer");
    figures.add(name + ": worst, all fabrics", everywhere.worst, "x", "best peer", "<=", 1);
    // Of the others nobody can be better than the best peer.
    figures.add(
        fmt::format("{}: mean of the {} cases in which the best peer sends anything", name, sending.count),
        sending.mean(), "x", "best peer", "<=", 0.6);
    figures.add(name + ": mean that the bounds leave possible", possible.mean(), "x", "best peer");
    if (gap_everywhere.count > 0)
        figures.add(fmt::format("{}: mean gap of {} cases", name, gap_everywhere.count),
                    gap_everywhere.mean(), "%", "oracle's bound", "<=", 1);
    if (least.count > 0) {
        // What no placement can be below, beside what banyan has in the same cases.
        const auto of = fmt::format("{}: mean of {} cases with a bound, ", name, least.count);
        figures.add(of + "banyan", bounded.mean(), "x", "best peer");
        figures.add(of + "the bound itself", least.mean(), "x", "best peer");
    }
}

/// How often the emulation and slurmctld give the same nodes: what the replayed day rests on.
void compare_trees(banyan::bench::figures& figures, const std::vector<site>& sites,
                   const std::vector<test_case>& cases, const slurm_answers& slurm) {
    int asked = 0, same = 0;
    for (std::size_t i = 0; i < cases.size(); ++i)
        if (slurm.tree[i]) {
            ++asked;
            same += *slurm.tree[i] == tree_emulated(sites[cases[i].site], cases[i].free, cases[i].job.nodes);
        }
    if (asked > 0)
        figures.add("tree (emulated), same nodes", 100.0 * same / asked, "%", slurm.tree_by + " tree");
}

struct options {
    std::string json;
    std::uint64_t seeds = 2, held_out = 0;
    std::uint32_t day = 2026;
    bool verbose = false, no_slurm = false, no_oracle = false, no_day = false;
    oracle_limits oracle;
};

int run(const options& o) {
    const auto table = o.json.empty();
    banyan::bench::figures figures;
    const auto sites = all_sites();
    const auto cases = o.held_out > 0 ? held_out_cases(sites, o.held_out) : all_cases(sites, o.seeds);
    slurm_answers slurm;
    slurm.tree.resize(cases.size());
    slurm.block.resize(cases.size());
    slurm.why_no_tree = slurm.why_no_block = "--no-slurm";
    if (!o.no_slurm) slurm = ask_slurm(sites, cases);
    std::deque<outcome> all;
    std::deque<test_case> variants;  // which the outcomes point to
    int tried = 0, solved = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const auto& s = sites[cases[i].site];
        for (auto& each : o.held_out > 0 ? std::vector{cases[i]} : variants_of(s, cases[i])) {
            const auto& c = variants.emplace_back(std::move(each));
            const test::every_rank job(c.job);
            auto& out = all.emplace_back(evaluate(s, c, job, slurm.tree[i], slurm.block[i]));
            // A program takes seconds: of the ways to fill a node one in turn.
            if (!o.no_oracle && (o.held_out > 0 || std::uint32_t{1} << i % 4 == c.a_node)) {
                out.bound = oracle_bound(s, c, job, o.oracle);
                ++tried;
                solved += out.bound.has_value();
            }
            compare(out);
            out.counted = counted_bound(s, c, job);
            if (out.counted > out.by[ours]->sent.weighted * (1 + rounding)) figures_wrong(s, out);
            out.counted = std::max(out.counted, out.bound.value_or(0));  // to the solver's tolerance
            if (o.verbose && (out.ratio() > 1 || (out.bound && out.gap() > 3))) tell(s, out);
        }
    }
    if (table) {
        fmt::print(
            "{} jobs on {} free lists: 1, 2, 4 or 8 stages or tensor groups a node, two kinds of weights\n",
            all.size(), cases.size());
        fmt::print("tree: {}\nblock: {}\n",
                   slurm.tree_by.empty() ? "not asked: " + slurm.why_no_tree
                                         : slurm.tree_by + ", topology/tree, ranks in name order",
                   slurm.block_by.empty()
                       ? "left out: " + slurm.why_no_block
                       : slurm.block_by + ", topology/block --segment=<pp>, ranks in name order");
        fmt::print(
            "oracle: {}\n",
            o.no_oracle ? "left out: --no-oracle"
            : oracle_solver().empty()
                ? "left out: apt-get install coinor-cbc (or glpk-utils)"
                : fmt::format("{} proved {} of {} optimal; tried up to {} leaf groups x stages, {} s each",
                              oracle_solver(), solved, tried, o.oracle.variables, o.oracle.seconds));
        for (const bool model : {false, true}) print_methods(all, !slurm.block_by.empty(), model);
    }
    for (const bool model : {false, true}) summarise(figures, sites, all, table, model);
    means ratio;
    for (const auto& out : all) ratio.add(out.ratio());
    figures.add("all weights: mean, all fabrics", ratio.mean(), "x", "best peer", "<=", 0.6);
    figures.add("all weights: worst, all fabrics", ratio.worst, "x", "best peer", "<=", 1);
    compare_trees(figures, sites, cases, slurm);
    if (!o.no_day) replay_day(figures, o.day, table);
    if (table) fmt::print("\n");
    return figures.finish(o.json);
}

}  // namespace
}  // namespace banyan::topo::quality

int main(int argc, char** argv) {
    CLI::App app("How good banyan's placements are beside what a cluster gets otherwise.");
    banyan::topo::quality::options o;
    app.add_option("--json", o.json, "write the figures there instead of printing tables");
    app.add_option("--seeds", o.seeds, "free lists of each fabric and occupancy (default 2)");
    app.add_option("--held-out", o.held_out,
                   "instead so many cases that no other run has, each at random from a seed of its own");
    app.add_option("--oracle-seconds", o.oracle.seconds, "for each mixed-integer program (default 2)");
    app.add_option("--oracle-size", o.oracle.variables, "leaf groups x stages at most (default 40)");
    app.add_flag("--verbose", o.verbose, "each case in which a peer is better, to reproduce it");
    app.add_flag("--no-slurm", o.no_slurm, "ask no slurmctld");
    app.add_flag("--no-oracle", o.no_oracle, "no mixed-integer programs");
    app.add_option("--day", o.day, "seed of the day that is replayed (default 2026)");
    app.add_flag("--no-day", o.no_day, "do not replay a day");
    CLI11_PARSE(app, argc, argv);
    return banyan::topo::quality::run(o);
}
