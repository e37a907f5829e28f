// SPDX-License-Identifier: BSD-3-Clause
#include "test/bench/placement_worst.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>

#include "test/random_requests.hpp"

namespace banyan::bench {
namespace {

using namespace banyan::topo;

constexpr double longest_ms = 50;

class series {
  public:
    explicit series(std::string name) : name_(std::move(name)) {}

    template <class Call>
    auto time(const std::string& fabric, const test::random_request& q, Call call) {
        const auto start = thread_ms();
        auto out = call();
        const auto took = thread_ms() - start;
        times_.push_back(took);
        if (took > longest_) {
            longest_ = took;
            worst_ = fabric + ": " + q.text();
        }
        return out;
    }

    void add_to(figures& out, int requests) {
        if (times_.empty()) return;
        std::sort(times_.begin(), times_.end());
        const auto at = [&](double share) {
            return times_[static_cast<std::size_t>(share * static_cast<double>(times_.size() - 1))];
        };
        const auto name = fmt::format("{}, {} adversarial requests", name_, requests);
        out.add(name + ", p50", at(0.5), "ms", "-");
        out.add(name + ", p99", at(0.99), "ms", "-");
        out.add(name + ", longest", longest_, "ms", "limit", "<=", longest_ms);
        fmt::print(stderr, "{}: the longest took {:.1f} ms: {}\n", name_, longest_, worst_);
    }

  private:
    std::string name_, worst_;
    std::vector<double> times_;
    double longest_ = 0;
};

/// A node in two is lost, and the spares and all else that is free can replace it.
result<placement> swap_half(const fabric& f, const test::random_request& q, const placement& p) {
    std::vector<std::uint32_t> lost, others;
    std::vector<bool> used(f.hosts.size());
    for (std::size_t slot = 0; slot < p.nodes.size(); ++slot) {
        used[p.nodes[slot]] = true;
        if (slot % 2) lost.push_back(p.nodes[slot]);
    }
    for (const auto h : q.free)
        if (!used[h]) others.push_back(h);
    return swap(f, p, lost, others);
}

}  // namespace

void measure_worst(figures& out, int requests) {
    const auto fabrics = test::fabrics_of_all_kinds(12'800);
    series placing("place"), weighing("weighted_cost"), counting("spread_of"), ranking("ranks_of_slots"),
        swapping("swap");
    std::vector<test::random_requests> askers;
    for (std::size_t i = 0; i < fabrics.size(); ++i)
        askers.emplace_back(fabrics[i].model, static_cast<std::uint32_t>(i));
    for (int i = 0; i < requests; ++i) {
        const auto& [name, f] = fabrics[static_cast<std::size_t>(i) % fabrics.size()];
        const auto q = askers[static_cast<std::size_t>(i) % fabrics.size()].next();
        const auto p = placing.time(name, q, [&] { return place(f, q.from(), q.asked); });
        if (!p) std::abort();
        weighing.time(name, q, [&] { return weighted_cost(f, q.asked, *p); });
        counting.time(name, q, [&] { return spread_of(f, q.asked, *p); });
        if (i % 4) continue;
        ranking.time(name, q, [&] { return ranks_of_slots(q.asked); });
        swapping.time(name, q, [&] { return swap_half(f, q, *p); });
    }
    for (auto* each : {&placing, &weighing, &counting, &ranking, &swapping}) each->add_to(out, requests);
}

}  // namespace banyan::bench
