// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/communication_graph.hpp"

#include <algorithm>
#include <limits>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/communication.hpp"

namespace banyan::topo {
namespace {

/// Pairs of slots in groups where everybody sends to everybody.
std::size_t pairs_of_all_to_all(const request& r, const job_slots& job) {
    const auto stride = stride_of(r.dims, dimension::ep), members = r.dims.size(dimension::ep);
    std::size_t out = 0;
    for (std::uint32_t slot = 0; slot < r.nodes && members > 1; ++slot)
        out += members - 1 - job.first_rank(slot) / stride % members;
    return out;
}

/// Calls `visit(other, stands_for)` for some of the members after `member`: one for that at 1, one for those
/// at 2 and 3, one for 4 to 7, ...
template <class Visit>
void each_sampled(std::uint32_t member, std::uint32_t size, Visit visit) {
    for (std::uint64_t step = 1; member + step < size; step *= 2) {
        const auto stands_for = std::min<std::uint64_t>(step, size - member - step);
        visit(static_cast<std::uint32_t>(member + step + stands_for / 2), stands_for);
    }
}

}  // namespace

communication_graph::communication_graph(const request& r, const job_slots& job) : first_(r.nodes + 1) {
    struct pair {
        std::uint32_t from, to;
        double weight;
    };
    std::vector<pair> pairs;
    const auto weights = weights_of(r);
    const bool too_many = pairs_of_all_to_all(r, job) > max_pairs;
    std::uint32_t stride = 1;
    for (const auto& e : r.dims.order) {
        const auto how = pattern_of(e.dim);
        const auto weight = sends_of_pair(how) * weights[e.dim];
        for (std::uint32_t slot = 0; slot < r.nodes && e.size > 1; ++slot) {
            const auto rank = job.first_rank(slot);
            const auto at = rank / stride % e.size;
            const auto first = rank - at * stride;
            const auto join = [&](std::uint32_t member, double weight_of_edge) {
                const auto other = job.slot_of(first + member * stride);
                if (other == slot) return;
                pairs.push_back({slot, other, weight_of_edge});
                pairs.push_back({other, slot, weight_of_edge});
            };
            if (how == pattern::all_to_all && too_many)
                each_sampled(at, e.size, [&](std::uint32_t member, std::uint64_t stands_for) {
                    join(member, weight * static_cast<double>(stands_for));
                });
            else
                each_pair(how, at, e.size, [&](std::uint32_t member) { join(member, weight); });
        }
        stride *= e.size;
    }
    for (const auto& p : pairs) ++first_[p.from + 1];
    for (std::size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
    edges_.resize(pairs.size());
    auto next = first_;
    for (const auto& p : pairs) edges_[next[p.from]++] = {p.to, p.weight};
}

double communication_graph::objective(const bin_distances& distance,
                                      const std::vector<std::uint32_t>& bin_of_slot) const {
    auto unlimited = std::numeric_limits<std::int64_t>::max();
    return objective(distance, bin_of_slot, std::numeric_limits<double>::max(), unlimited);
}

double communication_graph::objective(const bin_distances& distance,
                                      const std::vector<std::uint32_t>& bin_of_slot, double limit,
                                      std::int64_t& budget) const {
    double sum = 0;
    std::uint32_t slot = 0;
    for (; slot < bin_of_slot.size() && sum < limit; ++slot)
        for (const auto& e : of(slot))
            if (e.to > slot) sum += e.weight * distance(bin_of_slot[slot], bin_of_slot[e.to]);
    budget -= first_[slot];
    return sum;
}

double communication_graph::difference(const bin_distances& distance,
                                       const std::vector<std::uint32_t>& before,
                                       const std::vector<std::uint32_t>& after,
                                       std::span<const std::uint32_t> moved, std::int64_t& budget) const {
    double sum = 0;
    for (const auto slot : moved) {
        for (const auto& e : of(slot)) {
            const bool both = before[e.to] != after[e.to];
            if (both && e.to < slot) continue;
            sum += e.weight * (distance(after[slot], after[e.to]) - distance(before[slot], before[e.to]));
        }
        budget -= static_cast<std::int64_t>(of(slot).size());
    }
    return sum;
}

}  // namespace banyan::topo
