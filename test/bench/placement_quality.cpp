// SPDX-License-Identifier: BSD-3-Clause
//
// quality_bench: how good banyan's placements are beside what a cluster gets otherwise, on the same free
// nodes. Free nodes are what a seeded day of jobs leaves that a plain best fit placed; banyan had no part in
// them. Each job is placed with each of three models given, and without one. Prints tables, or with --json
// FILE the list of figures; --verbose names each case in which a limit is broken.
#include "test/bench/placement_quality.hpp"

#include <algorithm>
#include <cmath>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "test/bench/placement_quality_outcome.hpp"
#include "test/built.hpp"

namespace banyan::topo::quality {
namespace {

constexpr double rounding = 1e-9;           ///< of sums in different orders
constexpr double infinite_ratio = 1000;     ///< stands for a peer that needs no byte where banyan needs some
constexpr double most_in_one_model = 1.05;  ///< of the best peer's, where no model is given
constexpr double most_over_bound = 1.01;

double ratio_of(double mine, double theirs) {
    if (theirs <= 0) return mine > 0 ? infinite_ratio : 1;
    return std::abs(mine / theirs - 1) <= rounding ? 1 : mine / theirs;
}

struct means {
    double sum = 0, worst = 0;
    int count = 0, over = 0;  ///< above `limit`
    double limit = 1;
    void add(double x) {
        sum += x;
        worst = std::max(worst, x);
        over += x > limit;
        ++count;
    }
    double mean() const { return count ? sum / count : 0; }
};

void tell(const site& s, const outcome& o, const std::string& what) {
    fmt::print("{}: {}, {:.0f} % occupied, seed {}, {} on {} nodes\n", what, s.name, 100 * o.c->occupied,
               o.c->seed, o.c->job.dims.text(), o.c->job.nodes);
}

struct summary {
    means given, bounded, least, over_bound, without, single{0, 0, 0, 0, most_in_one_model}, hindsight,
        counted;

    void add(const site& s, const outcome& o, bool verbose) {
        for (std::size_t m = 0; m < models.size(); ++m) {
            const auto best = o.best(m), ratio = ratio_of(o.given[m], best),
                       one = ratio_of(o.without[m], best);
            given.add(ratio);
            single.add(one);
            if (verbose && ratio > 1) tell(s, o, fmt::format("{:.4f} with {}", ratio, models[m].name));
            if (verbose && one > most_in_one_model)
                tell(s, o, fmt::format("{:.4f} without, by {}", one, models[m].name));
            if (o.counted[m] && *o.counted[m] > o.given[m] * (1 + 1e-6)) bound_is_wrong(s, o);
            if (o.counted[m] && best > 0) counted.add(*o.counted[m] / best);
            if (!o.bound[m]) continue;
            const auto over = ratio_of(o.given[m], *o.bound[m]);
            over_bound.add(over);
            if (verbose && over > most_over_bound)
                tell(s, o, fmt::format("{:.4f} of the bound with {}", over, models[m].name));
            if (best <= 0) continue;
            bounded.add(ratio);
            least.add(*o.bound[m] / best);
        }
        const auto total = ratio_of(sum(o.without), o.best_sum());
        without.add(total);
        if (verbose && total > 1) tell(s, o, fmt::format("{:.4f} without, over all models", total));
    }

  private:
    /// A bound that a placement is below proves nothing but that it is wrong.
    [[noreturn]] static void bound_is_wrong(const site& s, const outcome& o) {
        tell(s, o, "a bound is above a placement");
        std::abort();
    }
};

void print_tables(const std::vector<site>& sites, const std::vector<outcome>& all) {
    fmt::print(
        "\nbanyan / best peer        with a model: mean   worst   lost   without: mean   worst   lost   in "
        "one model: worst\n");
    for (std::size_t i = 0; i < sites.size(); ++i) {
        summary one;
        for (const auto& o : all)
            if (o.c->site == i) one.add(sites[i], o, false);
        fmt::print("{:<24}{:>20.3f}{:>8.3f}{:>7}{:>16.3f}{:>8.3f}{:>7}{:>22.3f}\n", sites[i].name,
                   one.given.mean(), one.given.worst, one.given.over, one.without.mean(), one.without.worst,
                   one.without.over, one.single.worst);
    }
    fmt::print("\nbanyan / peer, sum over the models, without one          mean     worst\n");
    for (std::size_t p = 0; p < all.front().peers.size(); ++p) {
        means against;
        for (const auto& o : all)
            if (o.peers[p].there && o.peers[p].total > 0)
                against.add(ratio_of(sum(o.without), o.peers[p].total));
        fmt::print("{:<50}{:>11.3f}{:>10.3f}\n", all.front().peers[p].name, against.mean(), against.worst);
    }
}

void summarise(banyan::bench::figures& figures, const std::vector<site>& sites,
               const std::vector<outcome>& all, bool verbose) {
    summary s;
    for (const auto& o : all) s.add(sites[o.c->site], o, verbose);
    const auto peer = "best peer";
    figures.add("with a model: mean", s.given.mean(), "x", peer);
    figures.add("with a model: worst", s.given.worst, "x", peer, "<=", 1);
    figures.add("without: mean of the sums over the models", s.without.mean(), "x", peer);
    figures.add("without: worst sum over the models", s.without.worst, "x", peer, "<=", 1);
    figures.add("without: mean of single models", s.single.mean(), "x", peer);
    figures.add("without: worst single model", s.single.worst, "x", peer, "<=", most_in_one_model);
    figures.add(fmt::format("mean of the {} bounds by counting", s.counted.count), s.counted.mean(), "x",
                peer);
    if (s.over_bound.count == 0) return;
    // What no placement can be below, beside what banyan has in the same cases.
    const auto of = fmt::format("with a model: mean of {} cases with a proven bound, ", s.least.count);
    figures.add(of + "banyan", s.bounded.mean(), "x", peer);
    figures.add(of + "the bound itself", s.least.mean(), "x", peer);
    const auto over = fmt::format("with a model: {} proven bounds, ", s.over_bound.count);
    figures.add(over + "mean", s.over_bound.mean(), "x", "bound", "<=", most_over_bound);
    figures.add(over + "worst", s.over_bound.worst, "x", "bound", "<=", most_over_bound);
}

struct options {
    std::string json, cases = banyan::testing::source("test/bench/placement_quality_cases.tsv");
    std::size_t every = 1;
    std::uint32_t day = 2026;
    bool verbose = false, no_slurm = false, no_oracle = false, no_day = false;
    oracle_limits oracle;
};

int run(const options& o) {
    const auto table = o.json.empty();
    banyan::bench::figures figures;
    const auto sites = all_sites();
    std::vector<test_case> cases;
    for (std::size_t i = 0; auto& c : read_cases(sites, o.cases))
        if (i++ % o.every == 0) cases.push_back(std::move(c));
    slurm_answers slurm;
    slurm.tree.resize(cases.size());
    slurm.block.resize(cases.size());
    slurm.why_no_tree = slurm.why_no_block = "--no-slurm";
    if (!o.no_slurm) slurm = ask_slurm(sites, cases);
    std::vector<outcome> all;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const evaluation job(sites[cases[i].site], cases[i]);
        all.push_back(job.outcome_beside(slurm.tree[i], slurm.block[i]));
        job.prove(o.oracle, !o.no_oracle, all.back());
    }
    if (table) {
        fmt::print("{} jobs, each with {} models and without\n", all.size(), models.size());
        fmt::print("tree: {}\nblock: {}\n",
                   slurm.tree_by.empty() ? "emulated: " + slurm.why_no_tree : slurm.tree_by,
                   slurm.block_by.empty() ? "emulated: " + slurm.why_no_block
                                          : slurm.block_by + " with --segment=<pp>, and emulated");
        fmt::print("oracle: {}\n", o.no_oracle               ? "left out: --no-oracle"
                                   : oracle_solver().empty() ? "left out: apt-get install coinor-cbc"
                                                             : oracle_solver());
        print_tables(sites, all);
    }
    summarise(figures, sites, all, o.verbose);
    if (!o.no_day) replay_day(figures, o.day, table);
    if (table) fmt::print("\n");
    const auto status = figures.finish(o.json);
    const bool missed = std::ranges::any_of(figures.all(), [](const auto& f) { return f.holds == false; });
    return status != 0 ? status : missed;
}

}  // namespace
}  // namespace banyan::topo::quality

int main(int argc, char** argv) {
    CLI::App app("How good banyan's placements are beside what a cluster gets otherwise.");
    banyan::topo::quality::options o;
    app.add_option("--json", o.json, "write the figures there instead of printing tables");
    app.add_option("--cases", o.cases, "fabric, shape, nodes, per cent occupied, seed; a line each");
    app.add_option("--every", o.every, "only one case of so many")->check(CLI::Range(1, 1000));
    app.add_option("--oracle-seconds", o.oracle.seconds, "for each mixed-integer program (default 2)");
    app.add_option("--oracle-size", o.oracle.variables, "leaf groups x stages at most (default 40)");
    app.add_flag("--verbose", o.verbose, "each case in which a limit is broken, to reproduce it");
    app.add_flag("--no-slurm", o.no_slurm, "ask no slurmctld");
    app.add_flag("--no-oracle", o.no_oracle, "no mixed-integer programs");
    app.add_option("--day", o.day, "seed of the day that is replayed (default 2026)");
    app.add_flag("--no-day", o.no_day, "do not replay a day");
    CLI11_PARSE(app, argc, argv);
    return banyan::topo::quality::run(o);
}
