// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of topo_bench share: speed on the largest fabric (topo_speed.cpp), and how right the model
// is (topo_score.cpp) on many spoilt ones (topo_mixed.cpp).
#pragma once

#include <array>
#include <string>
#include <vector>

#include <banyan/topo/reader.hpp>

#include "test/bench/figures.hpp"
#include "topo/generate/generate.hpp"

namespace banyan::topo::bench {

/// Reads, models and saves fabrics of several sizes, each in a process of its own (this program, by `self`).
/// A failure is printed and fails the program.
bool measure_speed(banyan::bench::figures& figures, int runs, bool quick);
/// What that process does; prints its times in seconds.
int measure_one(const std::string& dump, const std::string& snapshot);

/// Times show, check, snapshot and diff; the dump goes into `folder`. A failure is printed and fails the
/// program.
bool measure_commands(banyan::bench::figures& figures, int runs, const std::string& folder);
/// What they are compared with, in a process of its own: the lines of files in memory.
int read_lines(const std::vector<std::string>& paths);

struct run_result {
    int status = -1;  ///< of its exit
    double wall_s = 0;
    std::string output;
};
/// A program until its end. Its standard error is this program's.
run_result run_program(std::vector<std::string> words);

/// The options of fabric number `seed` of the mixed ones.
generate::options mixed_fabric(std::uint64_t seed);
/// The same of shapes that are no plain trees: dragonfly+, rail-only, routers, directors, mixed names.
generate::options other_fabric(std::uint64_t seed);
/// Of the shapes of mixed_fabric, without a defect: 0 to 30 % of the racks are off, and hosts sit on spines
/// and cores.
generate::options clean_fabric(std::uint64_t seed);
generate::options clean_other_fabric(std::uint64_t seed);

struct kind_score {
    std::uint64_t planted = 0, hit = 0;     ///< defects, and those that were found
    std::uint64_t reported = 0, right = 0;  ///< reports, and those of a planted defect
};

struct scores {
    std::array<kind_score, generate::defect_kinds> kinds;
    std::uint64_t switches = 0, levels_right = 0, off = 0, off_told = 0, off_wrong = 0;
    std::uint64_t other_reports = 0;  ///< of kinds that are never planted
    std::uint64_t refused = 0;        ///< fabrics that the reader would not take
    std::uint64_t hosts = 0, hosts_right = 0, hcas = 0, rails_right = 0, nameless = 0, nameless_right = 0;
};

/// Adds what the model says of one fabric; with `verbose` one line for each thing that is wrong.
void score(scores& s, const fabric& f, const generate::truth& facts, const std::string& label, bool verbose);
void print_scores(const scores& s);
/// Each figure's name begins with `of`.
void add_scores(banyan::bench::figures& figures, const scores& s, const std::string& of);
void add_clean_scores(banyan::bench::figures& figures, const scores& s, const std::string& of);

}  // namespace banyan::topo::bench
