// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of quality_bench share: fabrics, free nodes as a day of jobs leaves them, the ways to place
// a job, and what a placement costs. All of it follows from seeds; only the time limit of the oracle can make
// two runs differ.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/traffic.hpp>

#include "test/bench/figures.hpp"
#include "test/bench/placement_quality_bytes.hpp"

namespace banyan::topo::quality {

using hosts = std::vector<std::uint32_t>;

/// A fabric, its tier_cost as its oversubscription makes it.
struct site {
    std::string name;
    fabric net;
    std::uint32_t group_size = 0;
    std::uint32_t ranks_per_node = 8;
};

/// Leaf groups of `group_size` hosts, `spine_group` of them under the same spines, `island` of those groups
/// joined by a core. Host names follow the groups, unless `mixed`: then blocks of four names lie anywhere.
struct plan_of_site {
    const char* name;
    std::uint32_t groups, group_size, spine_group, island, rails, ranks_per_node;
    double core_oversubscription;
    bool mixed;
};
constexpr std::uint32_t uplinks_of_leaf = 4;
site make_site(const plan_of_site& p);
std::vector<site> all_sites();

/// Uniform in 0 .. n - 1 and in (0, 1), the same with every standard library.
std::uint32_t draw(std::mt19937& random, std::uint32_t n);
double draw_unit(std::mt19937& random);

/// Free hosts after a day of seeded jobs that a plain best fit placed: the leaf group that fits tightest,
/// else the fullest free ones first. Ascending.
hosts free_after_a_day(const site& s, double occupied, std::uint64_t seed);

/// A job on a free list.
struct test_case {
    std::size_t site = 0;
    double occupied = 0;
    std::uint64_t seed = 0;
    request job;
    hosts free;
};

/// The committed ones: a fabric, a shape, nodes, how much is occupied, and the seed of the free nodes.
std::vector<test_case> read_cases(const std::vector<site>& sites, const std::string& file);

hosts random_nodes(const hosts& free, std::uint32_t count, std::uint64_t seed);

/// topology/tree of Slurm 22.05 by its rules, for places where no slurmctld can be asked at every step.
/// Ascending; empty = refused.
hosts tree_emulated(const site& s, const hosts& free, std::uint32_t count);

/// topology/block with so many nodes a segment: whole segments in each leaf group, from the first one on, or
/// from the one that holds most. Ascending; empty = no room for them.
hosts block_emulated(const site& s, const hosts& free, std::uint32_t count, std::uint32_t segment,
                     bool largest_first);

/// What real slurmctlds answer, by case; absent = not asked or refused.
struct slurm_answers {
    std::string tree_by, block_by;  ///< "slurmctld 22.05.8"; empty = none there
    std::string why_no_tree, why_no_block;
    std::vector<std::optional<hosts>> tree, block;
};
slurm_answers ask_slurm(const std::vector<site>& sites, const std::vector<test_case>& cases);

/// One kind of places (leaf groups, spine groups, sites): which of the leaf groups are in which of them.
struct level {
    std::vector<std::uint32_t> place_of_group;
    std::uint32_t places = 0;
    double weight = 0;  ///< of a byte that leaves a place, beside what the levels below it cost
};
std::vector<level> levels_of(const site& s);

/// A job of pipelines and rings alone, as the bounds see it: `pipelines` rows of `stages` nodes, each with
/// some stages of a pipeline or some tensor groups of one stage. Absent for any other.
struct job_grid {
    std::uint32_t stages = 1, pipelines = 1;
    by_model ring{};  ///< bytes that one node sends on its rings
    by_model cut{};   ///< that a pipeline sends between two nodes, both ways
};
std::optional<job_grid> grid_of(const request& r, const counted_job& job);

/// A lower bound that needs no solver and holds for every size, and so is a weaker one: per level, how many
/// places each stage's ring has to touch, or how often a pipeline has to change its place, going by the free
/// hosts of the places alone.
double counted_bound(const site& s, const test_case& c, const job_grid& job, double ring, double cut);

/// A lower bound on the weighted bytes over every choice of nodes and ranks, from a mixed-integer program.
/// Absent: too large, no solver, or not solved within its time.
struct oracle_limits {
    std::uint32_t variables = 40;
    int seconds = 2;
};
std::string oracle_solver();  ///< "cbc", "glpsol", or empty
std::optional<double> oracle_bound(const site& s, const test_case& c, const job_grid& job, double ring,
                                   double cut, const oracle_limits& limits);

/// 2,000 jobs on 2,048 nodes, first come first served with backfill.
void replay_day(banyan::bench::figures& figures, std::uint32_t seed, bool table);

}  // namespace banyan::topo::quality
