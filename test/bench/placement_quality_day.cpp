// SPDX-License-Identifier: BSD-3-Clause
//
// The same 2,000 jobs twice over 64 units of 32 nodes: placed by banyan, and by topology/tree's rules with
// ranks in name order. First come first served with backfill that does not delay the first in the queue.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "test/bench/placement_quality.hpp"
#include "test/every_rank.hpp"

namespace banyan::topo::quality {
namespace {

struct job {
    double arrives = 0, lasts = 0;  ///< hours
    request what;
    test::every_rank ranks;
};

struct running {
    double ends = 0;
    hosts nodes;
};

struct result_of_day {
    double wait = 0;         ///< mean, hours
    double utilisation = 0;  ///< share of node hours from the first arrival to the last
    double weighted = 0;     ///< what crosses above the leaf, by what placement weighs it
    double bytes = 0;        ///< above the leaf
    double core = 0;         ///< between spine groups
};

constexpr std::uint32_t jobs_of_day = 2000;
constexpr double hours = 24;
constexpr double step_seconds = 10;

/// Arrivals over the day as a Poisson process; nodes as in `shapes`, half of the jobs with either rank order;
/// durations exponential, scaled so that the jobs are 95 % of the day's node hours.
std::vector<job> make_jobs(std::uint32_t machine, std::uint32_t seed, bool model) {
    struct kind {
        std::uint32_t pp, dp;
    };
    // As often as listed: 1 to 512 nodes, pipelines of 1 to 16 nodes, some of them not powers of two.
    constexpr kind kinds[] = {{1, 1}, {1, 1},  {1, 2},  {2, 1},  {2, 2},  {4, 1},  {4, 2},   {3, 2},
                              {4, 4}, {6, 2},  {4, 5},  {8, 2},  {4, 8},  {8, 4},  {8, 7},   {4, 16},
                              {8, 8}, {4, 24}, {8, 16}, {16, 8}, {4, 48}, {8, 32}, {16, 16}, {16, 32}};
    std::mt19937 random(seed);
    std::vector<job> out;
    double now = 0, load = 0;
    for (std::uint32_t i = 0; i < jobs_of_day; ++i) {
        now -= hours / jobs_of_day * std::log(draw_unit(random));
        const auto k = kinds[draw(random, std::size(kinds))];
        const auto text = draw(random, 2) ? fmt::format("tp=8,pp={},dp={}", k.pp, k.dp)
                                          : fmt::format("tp=8,dp={},pp={}", k.dp, k.pp);
        const double lasts = -std::log(draw_unit(random));
        const auto nodes = k.pp * k.dp;
        auto asked = make_request(parse_shape(text).value(), nodes, 8, 0).value();
        if (model) asked.model = model_size{};
        out.push_back({now, lasts, asked, test::every_rank(asked)});
        load += lasts * nodes;
    }
    const double scale = 0.95 * hours * machine / load;
    for (auto& j : out) j.lasts *= scale;
    return out;
}

class simulation {
  public:
    simulation(const site& s, const std::vector<job>& jobs, bool by_banyan)
        : site_(s),
          jobs_(jobs),
          by_banyan_(by_banyan),
          busy_(s.net.hosts.size()),
          free_count_(s.net.hosts.size()) {}

    result_of_day run() {
        std::size_t next = 0;
        const double last_arrival = jobs_.back().arrives;
        while (next < jobs_.size() || !queue_.empty()) {
            const double arrival = next < jobs_.size() ? jobs_[next].arrives : INFINITY;
            const auto first = earliest();
            now_ = std::min(arrival, first == running_.end() ? INFINITY : first->ends);
            if (arrival <= now_)
                queue_.push_back(next++);
            else
                finish(first);
            schedule(last_arrival);
        }
        out_.wait /= static_cast<double>(jobs_.size());
        out_.utilisation /= last_arrival * static_cast<double>(busy_.size());
        return out_;
    }

  private:
    std::vector<running>::iterator earliest() {
        return std::min_element(running_.begin(), running_.end(),
                                [](const running& a, const running& b) { return a.ends < b.ends; });
    }
    void finish(std::vector<running>::iterator which) {
        for (const auto h : which->nodes) busy_[h] = false;
        free_count_ += which->nodes.size();
        running_.erase(which);
    }
    void schedule(double last_arrival) {
        while (!queue_.empty() && jobs_[queue_.front()].what.nodes <= free_count_) {
            start(queue_.front(), last_arrival);
            queue_.erase(queue_.begin());
        }
        if (queue_.empty()) return;
        // When the first can start, and how many nodes are over then.
        auto ends = running_;
        std::sort(ends.begin(), ends.end(),
                  [](const running& a, const running& b) { return a.ends < b.ends; });
        std::size_t there = free_count_, i = 0;
        const std::size_t wanted = jobs_[queue_.front()].what.nodes;
        double starts = now_;
        while (there < wanted) {
            there += ends[i].nodes.size();
            starts = ends[i++].ends;
        }
        std::size_t over = there - wanted;
        for (std::size_t q = 1; q < queue_.size();) {
            const auto& j = jobs_[queue_[q]];
            const bool in_time = now_ + j.lasts <= starts;
            if (j.what.nodes > free_count_ || (!in_time && j.what.nodes > over)) {
                ++q;
                continue;
            }
            if (!in_time) over -= j.what.nodes;
            start(queue_[q], last_arrival);
            queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(q));
        }
    }
    void start(std::size_t which, double last_arrival) {
        const auto& j = jobs_[which];
        hosts free;
        for (std::uint32_t h = 0; h < busy_.size(); ++h)
            if (!busy_[h]) free.push_back(h);
        const auto placed = by_banyan_ ? place(site_.net, free, j.what).value()
                                       : placement{tree_emulated(site_, free, j.what.nodes), {}, {}};
        const auto sent = j.ranks.on(site_.net, placed);
        const auto steps = std::floor(j.lasts * 3600 / step_seconds);
        out_.weighted += sent.weighted * steps;
        out_.bytes += sent.above_leaf() * steps;
        out_.core += sent.core() * steps;
        out_.wait += now_ - j.arrives;
        out_.utilisation += std::max(0.0, std::min(now_ + j.lasts, last_arrival) - now_) * j.what.nodes;
        for (const auto h : placed.nodes) busy_[h] = true;
        free_count_ -= placed.nodes.size();
        running_.push_back({now_ + j.lasts, placed.nodes});
    }

    const site& site_;
    const std::vector<job>& jobs_;
    bool by_banyan_;
    std::vector<bool> busy_;
    std::size_t free_count_;
    std::vector<std::size_t> queue_;
    std::vector<running> running_;
    double now_ = 0;
    result_of_day out_;
};

}  // namespace

void replay_day(banyan::bench::figures& figures, std::uint32_t seed, bool table) {
    const auto s = make_site({"2,048 nodes, SU of 32", 64, 32, 16, 4, 8, 8, 1, false});
    if (table)
        fmt::print(
            "\nA day of {} jobs of 1 to 512 nodes on {}, Poisson arrivals, exponential durations,\n"
            "95 % load, a step each {:.0f} s\n{:<40}{:>12}{:>12}{:>11}{:>14}{:>14}\n",
            jobs_of_day, s.name, step_seconds, "placed by", "mean wait", "utilisation", "weighted",
            "above leaf", "core");
    const std::string tree = "tree (emulated)";
    for (const bool model : {false, true}) {
        const auto jobs = make_jobs(static_cast<std::uint32_t>(s.net.hosts.size()), seed, model);
        const auto mine = simulation(s, jobs, true).run(), theirs = simulation(s, jobs, false).run();
        const std::string by = model ? "bytes of a 70B model" : "usual models";
        if (table)
            for (const auto& [name, r] : {std::pair(std::string("banyan"), mine), std::pair(tree, theirs)})
                fmt::print("{:<40}{:>10.3f} h{:>10.2f} %{:>11.3g}{:>11.3f} EB{:>11.3f} EB\n",
                           name + ", " + by, r.wait, 100 * r.utilisation, r.weighted, r.bytes / 1e18,
                           r.core / 1e18);
        const auto ratio = [](double a, double b) { return b > 0 ? a / b : a > 0 ? 1000 : 1; };
        const auto day = "replayed day, " + by + ": ";
        // Neither refuses free nodes, so wait and utilisation differ only if one day's jobs do.
        figures.add(day + "wait", ratio(mine.wait, theirs.wait), "x", tree, "<=", 1.01);
        figures.add(day + "utilisation", ratio(mine.utilisation, theirs.utilisation), "x", tree, ">=", 0.99);
        figures.add(day + "weighted bytes", ratio(mine.weighted, theirs.weighted), "x", tree, "<=", 0.6);
        figures.add(day + "above the leaves", ratio(mine.bytes, theirs.bytes), "x", tree, "<=", 1);
        figures.add(day + "between spine groups", ratio(mine.core, theirs.core), "x", tree, "<=", 1);
    }
}

}  // namespace banyan::topo::quality
