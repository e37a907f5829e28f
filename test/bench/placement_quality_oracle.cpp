// SPDX-License-Identifier: BSD-3-Clause
//
// The oracle: a mixed-integer program over how many nodes of each pipeline stage (or of the stages that share
// a node) every leaf group gives. For each stage a data parallel ring leaves every leaf group, spine group
// and site that it touches at least once (never, if it touches one), and between two stages as many pipelines
// cross as the counts of a leaf group differ. Ring order is not part of it, so its optimum is a lower bound,
// not always a placement.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {
namespace {

class program {
  public:
    /// In units of what a ring sends, so that the solver sees numbers near 1.
    program(const site& s, const test_case& c, const job_grid& job, double ring, double cut)
        : stages_(job.stages),
          pipelines_(job.pipelines),
          levels_(levels_of(s)),
          free_(s.net.leaf_groups.size()),
          ring_(ring),
          cut_(cut) {
        for (const auto h : c.free) ++free_[s.net.hosts[h].leaf_group];
    }
    std::uint32_t variables() const {
        std::uint32_t groups = 0;
        for (const auto n : free_) groups += n > 0;
        return groups * stages_;
    }
    double unit() const { return ring_ > 0 ? ring_ : cut_; }

    std::string text() {
        for (std::uint32_t s = 0; s < stages_; ++s) stage(s);
        for (std::uint32_t g = 0; g < free_.size(); ++g)
            if (free_[g] > 0) {
                std::string sum;
                for (std::uint32_t s = 0; s < stages_; ++s) sum += fmt::format(" + n{}_{}", g, s);
                rows_ += fmt::format("{} <= {}\n", sum, free_[g]);
            }
        if (objective_.empty()) objective_ = " + 0 n0_0";
        return fmt::format("Minimize\n obj: {}\nSubject To\n{}General\n{}\nBinary\n{}\nEnd\n", objective_,
                           rows_, integers_, binaries_);
    }

  private:
    void stage(std::uint32_t s) {
        std::string all;
        for (std::uint32_t g = 0; g < free_.size(); ++g)
            if (free_[g] > 0) {
                all += fmt::format(" + n{}_{}", g, s);
                integers_ += fmt::format(" n{}_{}\n", g, s);
            }
        rows_ += fmt::format("{} = {}\n", all, pipelines_);
        for (std::size_t l = 0; l < levels_.size(); ++l) crossings(l, s);
    }

    /// The nodes of stage s in place p of a level, with the sign in front.
    std::string count(const level& l, std::uint32_t p, std::uint32_t s, char sign) const {
        std::string out;
        for (std::uint32_t g = 0; g < free_.size(); ++g)
            if (free_[g] > 0 && l.place_of_group[g] == p) out += fmt::format(" {} n{}_{}", sign, g, s);
        return out;
    }

    void crossings(std::size_t at, std::uint32_t s) {
        const auto& l = levels_[at];
        std::string touched;
        std::uint32_t places = 0;
        for (std::uint32_t p = 0; p < l.places; ++p) {
            const auto here = count(l, p, s, '-');
            if (here.empty()) continue;
            ++places;
            std::uint32_t room = 0;
            for (std::uint32_t g = 0; g < free_.size(); ++g)
                if (l.place_of_group[g] == p) room += free_[g];
            const auto z = fmt::format("z{}_{}_{}", at, p, s);
            binaries_ += fmt::format(" {}\n", z);
            rows_ += fmt::format(" {} {}{} >= 0\n", std::min(room, pipelines_), z, here);
            touched += fmt::format(" + {}", z);
            objective_ += fmt::format(" + {:.9g} {}\n", l.weight * ring_ / unit(), z);
            if (s + 1 == stages_) continue;
            rows_ += fmt::format(" e{}_{}_{}{}{} >= 0\n", at, p, s, here, count(l, p, s + 1, '+'));
            objective_ += fmt::format(" + {:.9g} e{}_{}_{}\n", l.weight * cut_ / unit(), at, p, s);
        }
        if (places == 0) return;
        // m is 1 where the ring stays in one place.
        const auto m = fmt::format("m{}_{}", at, s);
        binaries_ += fmt::format(" {}\n", m);
        rows_ +=
            fmt::format("{} + {} {} <= {}\n", touched, places - 1 + (places == 1), m, places + (places == 1));
        objective_ += fmt::format(" - {:.9g} {}\n", l.weight * ring_ / unit(), m);
    }

    std::uint32_t stages_, pipelines_;
    std::vector<level> levels_;
    std::vector<std::uint32_t> free_;
    double ring_ = 0, cut_ = 0;
    std::string objective_, rows_, integers_, binaries_;
};

std::optional<double> read_cbc(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    constexpr std::string_view proven = "Optimal - objective value ";
    if (!std::getline(in, line) || !line.starts_with(proven)) return std::nullopt;
    return std::strtod(line.c_str() + proven.size(), nullptr);
}

std::optional<double> read_glpsol(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    bool optimal = false;
    while (std::getline(in, line)) {
        if (line.starts_with("Status:")) optimal = line.find("INTEGER OPTIMAL") != std::string::npos;
        if (const auto at = line.find(" = "); line.starts_with("Objective:") && at != std::string::npos)
            return optimal ? std::optional(std::strtod(line.c_str() + at + 3, nullptr)) : std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

std::vector<level> levels_of(const site& s) {
    std::vector<level> out(3);
    for (std::uint32_t g = 0; g < s.net.leaf_groups.size(); ++g) {
        const auto& group = s.net.leaf_groups[g];
        const std::uint32_t places[] = {g, group.spine_group, group.island};
        for (int l = 0; l < 3; ++l) {
            out[l].place_of_group.push_back(places[l]);
            out[l].places = std::max(out[l].places, places[l] + 1);
        }
    }
    for (std::size_t l = 0; l < 3; ++l) out[l].weight = s.net.tier_cost[l + 2] - s.net.tier_cost[l + 1];
    std::erase_if(out, [](const level& l) { return l.places < 2; });
    return out;
}

std::string oracle_solver() {
    for (const char* name : {"cbc", "glpsol"})
        if (std::filesystem::exists(fmt::format("/usr/bin/{}", name))) return name;
    return {};
}

std::optional<double> oracle_bound(const site& s, const test_case& c, const job_grid& job, double ring,
                                   double cut, const oracle_limits& limits) {
    const auto solver = oracle_solver();
    program lp(s, c, job, ring, cut);
    if (solver.empty() || lp.variables() > limits.variables) return std::nullopt;
    const auto folder = std::filesystem::temp_directory_path();
    const auto input = (folder / fmt::format("quality_bench.{}.lp", getpid())).string();
    const auto output = input + ".out";
    std::ofstream(input) << lp.text();
    const auto command = solver == "cbc" ? fmt::format("cbc {} sec {} ratio 0 solve solu {} >/dev/null 2>&1",
                                                       input, limits.seconds, output)
                                         : fmt::format("glpsol --lp {} --tmlim {} -o {} >/dev/null 2>&1",
                                                       input, limits.seconds, output);
    std::optional<double> found;
    if (std::system(command.c_str()) == 0) found = solver == "cbc" ? read_cbc(output) : read_glpsol(output);
    std::filesystem::remove(input);
    std::filesystem::remove(output);
    if (found) *found = std::max(0.0, *found * lp.unit());
    return found;
}

}  // namespace banyan::topo::quality
