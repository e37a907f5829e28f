// SPDX-License-Identifier: BSD-3-Clause
//
// The objective of a placement, exact: every send counts, by nodes where cost_of goes from rank to rank, and
// nothing is left out as in the communication graph, which the searches use.
#include <algorithm>
#include <numeric>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/communication.hpp"
#include "topo/placement/job_slots.hpp"
#include "topo/placement/locations.hpp"

namespace banyan::topo {
namespace {

/// Ranks that send to another one each, by the tier where the two meet.
class tiers {
  public:
    tiers(const request& r, const job_slots& job, const slot_locations& at) : r_(r), job_(job), at_(at) {}

    /// To the next on a ring, or to both neighbours of a pipeline.
    by_tier<std::uint64_t> along(dimension d) const {
        by_tier<std::uint64_t> out{};
        const auto how = pattern_of(r_, d);
        job_.cut().each_successor(
            d, how == pattern::ring, [&](std::uint32_t a, std::uint32_t b, std::uint64_t ranks) {
                const auto t = at_.between(job_.slot_of_block(a), job_.slot_of_block(b));
                out[t] += sends_of_pair(how) * ranks;
            });
        return out;
    }

    /// Everybody to everybody else. Groups whose members are on the same blocks are counted once: those that
    /// begin within `step` positions.
    by_tier<std::uint64_t> all_to_all(dimension d) const {
        const auto& cut = job_.cut();
        const std::uint64_t size = cut.members(d), stride = cut.distance(d), block = cut.size();
        const std::uint64_t step = std::gcd(stride, block), period = stride * size;
        const std::uint64_t positions = std::uint64_t{cut.count()} * block;
        by_tier<std::uint64_t> out{};
        pair_histogram together(at_);
        for (std::uint64_t begin = 0; begin < positions; begin += period)
            for (auto first = begin; first < begin + stride; first += step) {
                const auto end = first + period;  // beyond the last member by one stride
                for (auto at = first; at < end;) {
                    // Members side by side in one block.
                    const auto number = at / block, left = (number + 1) * block - at;
                    const auto members = std::min((left + stride - 1) / stride, (end - at) / stride);
                    together.add(job_.slot_of_block(static_cast<std::uint32_t>(number)), members);
                    at += members * stride;
                }
                const auto pairs = together.pairs();
                for (const auto t : all_tiers) out[t] += step * pairs[t];
                together.clear();
            }
        return out;
    }

  private:
    const request& r_;
    const job_slots& job_;
    const slot_locations& at_;
};

}  // namespace

double weighted_cost(const fabric& f, const request& r, const placement& p) {
    const job_slots job(r);
    const slot_locations at(f, p.nodes);
    const tiers count(r, job, at);
    const auto weights = weights_of(r);
    double out = 0;
    for (const auto d : all_dimensions) {
        if (r.dims.size(d) < 2) continue;
        const auto edges = pattern_of(r, d) == pattern::all_to_all ? count.all_to_all(d) : count.along(d);
        for (const auto t : all_tiers) out += static_cast<double>(edges[t]) * weights[d] * f.tier_cost[t];
    }
    return out;
}

}  // namespace banyan::topo
