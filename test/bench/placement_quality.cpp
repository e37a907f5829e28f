// SPDX-License-Identifier: BSD-3-Clause
//
// quality_bench: how good banyan's placements are beside what a cluster gets otherwise, on the same free
// nodes. Free nodes are what a seeded day of jobs leaves that a plain best fit placed; banyan had no part in
// them. Prints tables, or with --json FILE the list of figures; --verbose names each case that a peer won.
#include "test/bench/placement_quality.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"

namespace banyan::topo::quality {
namespace {

enum method { ours, ours_by_bytes, by_name, tree, tree_emu, block, chance, methods };
constexpr const char* method_names[methods] = {
    "banyan", "banyan, bytes first", "name order", "tree", "tree (emulated)", "block", "random"};
constexpr double infinite_ratio = 1000;  ///< stands for a peer that needs no byte where banyan needs some

struct outcome {
    const test_case* c = nullptr;
    std::string shape;
    std::array<std::optional<verdict>, methods> by;
    std::optional<double> bound;
    const char* best = "";
    double best_peer = 0;

    double ratio(method mine) const {
        const auto bytes = by[mine]->weighted;
        return best_peer > 0 ? bytes / best_peer : bytes > 0 ? infinite_ratio : 1;
    }
    /// Per cent over the oracle's bound.
    double gap(method mine) const {
        const auto bytes = by[mine]->weighted;
        return 100 * (*bound > 0 ? bytes / *bound - 1 : bytes > 0 ? infinite_ratio : 0);
    }
};

/// Jobs of two and more pipelines up to most of the free nodes, with pipelines of 4 and of 8 nodes.
std::vector<test_case> all_cases(const std::vector<site>& sites, std::uint64_t seeds) {
    std::vector<test_case> out;
    for (std::size_t s = 0; s < sites.size(); ++s)
        for (const double occupied : {0.0, 0.3, 0.5, 0.7, 0.9})
            for (std::uint64_t seed = 1; seed <= (occupied > 0 ? seeds : 1); ++seed) {
                const auto free = free_after_a_day(sites[s], occupied, seed);
                for (const std::uint32_t pp : {4u, 8u}) {
                    std::uint32_t last = 0;
                    for (const double share : {0.0, 0.1, 0.3, 0.6, 0.9}) {
                        const auto most = share * static_cast<double>(free.size()) / pp;
                        const auto dp = std::max(2u, static_cast<std::uint32_t>(most));
                        if (dp == last || dp * pp > free.size()) continue;
                        last = dp;
                        const auto tp = sites[s].ranks_per_node;
                        const auto dims = parse_shape(fmt::format("tp={},pp={},dp={}", tp, pp, dp));
                        out.push_back(
                            {s, occupied, seed, make_request(*dims, pp * dp, tp, 0).value(), free, pp});
                    }
                }
            }
    return out;
}

test_case reordered(const test_case& c) {
    auto out = c;
    std::swap(out.job.dims.order[1], out.job.dims.order[2]);
    return out;
}

outcome evaluate(const site& s, const test_case& c, const std::optional<hosts>& from_tree,
                 const std::optional<hosts>& from_block) {
    outcome o;
    o.shape = c.job.dims.text();
    const auto put = [&](method m, const placement& p) { o.by[m] = judge(s, c, p); };
    put(ours, place(s.net, c.free, c.job).value());
    auto job = c.job;
    job.first = objective::bytes;
    put(ours_by_bytes, place(s.net, c.free, job).value());
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
        if (o.best_peer >= 0 && o.by[m]->weighted >= o.best_peer) continue;
        o.best_peer = o.by[m]->weighted;
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

void tell(const site& s, const outcome& o) {
    std::vector<std::string> names;
    for (const auto h : o.c->free) names.push_back(s.net.hosts[h].name);
    fmt::print(
        "ratio {:.4f} ({:.4f} with bytes first): {}, {:.0f} % occupied, seed {}, {}, {} nodes; {} is "
        "better\n",
        o.ratio(ours), o.ratio(ours_by_bytes), s.name, 100 * o.c->occupied, o.c->seed, o.shape,
        o.c->job.nodes, o.best);
    std::vector<std::uint32_t> left(s.net.leaf_groups.size());
    for (const auto h : o.c->free) ++left[s.net.hosts[h].leaf_group];
    fmt::print("  free by leaf group {}\n  free {}\n", fmt::join(left, " "), compress_hostlist(names));
    for (int m = 0; m < methods; ++m)
        if (const auto& v = o.by[m])
            fmt::print("  {:<19} weighted {:.4g} above leaf {:.4g} core {:.4g} straddling {}/{} spread {}\n",
                       method_names[m], v->weighted, v->above_leaf, v->core, v->straddling, v->units,
                       v->spread);
    if (o.bound) fmt::print("  {:<19} weighted {:.4g}\n", "oracle's bound", *o.bound);
}

/// Means over the cases that every method answered.
void print_methods(const std::vector<outcome>& all, bool with_block) {
    fmt::print(
        "\nMeans over the cases (GB a step; weighted: each byte above the leaf by the tiers it crosses)\n");
    fmt::print("{:<20}{:>6}{:>11}{:>11}{:>10}{:>12}{:>11}{:>9}{:>9}\n", "method", "cases", "weighted",
               "above leaf", "core", "busiest up", "straddling", "spread", "wasted");
    for (int m = 0; m < methods; ++m) {
        means weighted, above, core, up, straddling, spread, wasted;
        for (const auto& o : all) {
            const auto& v = o.by[m];
            if (!v || (with_block && !o.by[block])) continue;
            weighted.add(v->weighted / 1e9);
            above.add(v->above_leaf / 1e9);
            core.add(v->core / 1e9);
            up.add(v->busiest_uplink / 1e9);
            straddling.add(100.0 * v->straddling / v->units);
            spread.add(v->spread);
            wasted.add(v->wasted);
        }
        if (weighted.count == 0) continue;
        fmt::print("{:<20}{:>6}{:>11.0f}{:>11.0f}{:>10.0f}{:>12.2f}{:>9.1f} %{:>9.0f}{:>9.2f}\n",
                   method_names[m], weighted.count, weighted.mean(), above.mean(), core.mean(), up.mean(),
                   straddling.mean(), spread.worst, wasted.mean());
    }
}

void summarise(nlohmann::json& figures, const std::vector<site>& sites, const std::vector<outcome>& all,
               bool table, method mine) {
    const std::string name = method_names[mine];
    if (table)
        fmt::print(
            "\nWeighted bytes of {} / the best peer's, and over the oracle's bound\n"
            "{:<30}{:>7}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}\n",
            name, "fabric", "cases", "mean", "worst", "lost", "equal", "oracle", "gap", "worst");
    means everywhere, gap_everywhere;
    for (std::size_t s = 0; s < sites.size(); ++s) {
        means ratio, gap;
        int lost = 0, equal = 0;
        for (const auto& o : all) {
            if (o.c->site != s) continue;
            ratio.add(o.ratio(mine));
            everywhere.add(o.ratio(mine));
            lost += o.ratio(mine) > 1 + 1e-9;
            equal += std::abs(o.ratio(mine) - 1) <= 1e-9;
            if (!o.bound) continue;
            gap.add(o.gap(mine));
            gap_everywhere.add(o.gap(mine));
        }
        if (table)
            fmt::print("{:<30}{:>7}{:>8.3f}{:>8.3f}{:>8}{:>8}{:>9}{:>6.1f} %{:>8.1f} %\n", sites[s].name,
                       ratio.count, ratio.mean(), ratio.worst, lost, equal, gap.count, gap.mean(), gap.worst);
        add_figure(figures, fmt::format("{}: mean, {}", name, sites[s].name), ratio.mean(), "x", "best peer");
        add_figure(figures, fmt::format("{}: worst, {}", name, sites[s].name), ratio.worst, "x", "best peer",
                   "<=", 1);
    }
    add_figure(figures, name + ": mean, all fabrics", everywhere.mean(), "x", "best peer");
    add_figure(figures, name + ": worst, all fabrics", everywhere.worst, "x", "best peer", "<=", 1);
    if (gap_everywhere.count > 0)
        add_figure(figures, fmt::format("{}: mean gap of {} cases", name, gap_everywhere.count),
                   gap_everywhere.mean(), "%", "oracle's bound", "<=", 3);
}

/// How often the emulation and slurmctld give the same nodes: what the replayed day rests on.
void compare_trees(nlohmann::json& figures, const std::vector<site>& sites,
                   const std::vector<test_case>& cases, const slurm_answers& slurm) {
    int asked = 0, same = 0;
    for (std::size_t i = 0; i < cases.size(); ++i)
        if (slurm.tree[i]) {
            ++asked;
            same += *slurm.tree[i] == tree_emulated(sites[cases[i].site], cases[i].free, cases[i].job.nodes);
        }
    if (asked > 0)
        add_figure(figures, "tree (emulated), same nodes", 100.0 * same / asked, "%",
                   slurm.tree_by + " tree");
}

struct options {
    std::string json;
    std::uint64_t seeds = 2;
    bool verbose = false, no_slurm = false, no_oracle = false, no_day = false;
    oracle_limits oracle;
};

int run(const options& o) {
    const auto table = o.json.empty();
    auto figures = nlohmann::json::array();
    const auto sites = all_sites();
    const auto cases = all_cases(sites, o.seeds);
    slurm_answers slurm;
    slurm.tree.resize(cases.size());
    slurm.block.resize(cases.size());
    slurm.why_no_tree = slurm.why_no_block = "--no-slurm";
    if (!o.no_slurm) slurm = ask_slurm(sites, cases);
    std::vector<outcome> all;
    std::vector<test_case> turned;
    turned.reserve(cases.size());
    int solved = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const auto& s = sites[cases[i].site];
        // Stages and pipelines are the same nodes in either order, so the bound is too.
        const auto bound = o.no_oracle ? std::nullopt : oracle_bound(s, cases[i], o.oracle);
        solved += bound.has_value();
        for (const test_case* c :
             {&cases[i], static_cast<const test_case*>(&turned.emplace_back(reordered(cases[i])))}) {
            auto& out = all.emplace_back(evaluate(s, *c, slurm.tree[i], slurm.block[i]));
            out.c = c;
            out.bound = bound;
            compare(out);
            if (o.verbose && std::max(out.ratio(ours), out.ratio(ours_by_bytes)) > 1 + 1e-9) tell(s, out);
        }
    }
    if (table) {
        fmt::print("{} free lists with a job, each in the orders tp,pp,dp and tp,dp,pp\n", cases.size());
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
                              oracle_solver(), solved, cases.size(), o.oracle.variables, o.oracle.seconds));
        print_methods(all, !slurm.block_by.empty());
    }
    for (const auto mine : {ours, ours_by_bytes}) summarise(figures, sites, all, table, mine);
    compare_trees(figures, sites, cases, slurm);
    if (!o.no_day) replay_day(figures, table);
    if (!table) {
        std::ofstream(o.json) << figures.dump(1) << '\n';
        return 0;
    }
    fmt::print("\n");
    for (const auto& f : figures)
        if (!f["goal"].is_null() || f["against"] != "best peer")
            fmt::print("{:<54}{:>10.3f} {:<6}{:<24}{}\n", f["figure"].get<std::string>(),
                       f["value"].get<double>(), f["unit"].get<std::string>(),
                       f["goal"].is_null() ? f["against"].get<std::string>() : f["goal"].get<std::string>(),
                       f["holds"].is_null()     ? ""
                       : f["holds"].get<bool>() ? "holds"
                                                : "MISSED");
    return 0;
}

}  // namespace
}  // namespace banyan::topo::quality

int main(int argc, char** argv) {
    CLI::App app("How good banyan's placements are beside what a cluster gets otherwise.");
    banyan::topo::quality::options o;
    app.add_option("--json", o.json, "write the figures there instead of printing tables");
    app.add_option("--seeds", o.seeds, "free lists of each fabric and occupancy (default 2)");
    app.add_option("--oracle-seconds", o.oracle.seconds, "for each mixed-integer program (default 2)");
    app.add_option("--oracle-size", o.oracle.variables, "leaf groups x stages at most (default 40)");
    app.add_flag("--verbose", o.verbose, "each case in which a peer is better, to reproduce it");
    app.add_flag("--no-slurm", o.no_slurm, "ask no slurmctld");
    app.add_flag("--no-oracle", o.no_oracle, "no mixed-integer programs");
    app.add_flag("--no-day", o.no_day, "do not replay a day");
    CLI11_PARSE(app, argc, argv);
    return banyan::topo::quality::run(o);
}
