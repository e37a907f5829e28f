// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/seating.hpp"
#include "topo/placement/sends.hpp"

namespace banyan::topo {

distances::distances(const fabric& f, const std::vector<pool>& pools) : cost_(f.tier_cost) {
    for (const auto& p : pools) at_.push_back(p.at);
}

slot_graph::slot_graph(const request& r, const job_layout& layout) : first_(r.nodes + 1) {
    struct pair {
        std::uint32_t from, to;
        double weight;
    };
    std::vector<pair> pairs;
    const auto weights = weights_of(r);
    const auto stride_ep = stride_of(r.dims, dimension::ep), members = r.dims.size(dimension::ep);
    std::size_t in_groups = 0;  // pairs of members of expert parallel groups
    for (std::uint32_t slot = 0; slot < r.nodes && members > 1; ++slot)
        in_groups += members - 1 - layout.first_rank(slot) / stride_ep % members;
    std::uint32_t stride = 1;
    for (const auto& e : r.dims.order) {
        const auto each = weights[e.dim];
        for (std::uint32_t slot = 0; slot < r.nodes && e.size > 1; ++slot) {
            const auto rank = layout.first_rank(slot);
            const auto at = rank / stride % e.size;
            const auto first = rank - at * stride;
            const auto to = [&](std::uint32_t member, double weight) {
                const auto other = layout.slot_of(first + member * stride);
                if (other == slot) return;
                pairs.push_back({slot, other, weight});
                pairs.push_back({other, slot, weight});
            };
            if (e.dim == dimension::ep && in_groups > max_pairs) {
                // One for those at 1, one for 2 and 3, one for 4 to 7, ...: as much weight as all of them
                // have.
                for (std::uint64_t far = 1; at + far < e.size; far *= 2) {
                    const auto stands_for = std::min<std::uint64_t>(far, e.size - at - far);
                    to(static_cast<std::uint32_t>(at + far + stands_for / 2),
                       2 * each * static_cast<double>(stands_for));
                }
            } else if (e.dim == dimension::ep) {
                for (std::uint32_t m = at + 1; m < e.size; ++m) to(m, 2 * each);
            } else if (e.dim == dimension::pp) {
                if (at + 1 < e.size) to(at + 1, 2 * each);
            } else {
                to((at + 1) % e.size, each);
            }
        }
        stride *= e.size;
    }
    for (const auto& p : pairs) ++first_[p.from + 1];
    for (std::size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
    edges_.resize(pairs.size());
    auto next = first_;
    for (const auto& p : pairs) edges_[next[p.from]++] = {p.to, p.weight};
}

double slot_graph::cost(const distances& far, const std::vector<std::uint32_t>& pool_of_slot, double limit,
                        std::int64_t& budget) const {
    double sum = 0;
    std::uint32_t slot = 0;
    for (; slot < pool_of_slot.size() && sum < limit; ++slot)
        for (const auto& e : of(slot))
            if (e.to > slot) sum += e.weight * far(pool_of_slot[slot], pool_of_slot[e.to]);
    budget -= first_[slot];
    return sum;
}

double slot_graph::difference(const distances& far, const std::vector<std::uint32_t>& before,
                              const std::vector<std::uint32_t>& after, std::span<const std::uint32_t> moved,
                              std::int64_t& budget) const {
    double sum = 0;
    for (const auto slot : moved) {
        for (const auto& e : of(slot)) {
            const bool both = before[e.to] != after[e.to];
            if (both && e.to < slot) continue;
            sum += e.weight * (far(after[slot], after[e.to]) - far(before[slot], before[e.to]));
        }
        budget -= static_cast<std::int64_t>(of(slot).size());
    }
    return sum;
}

}  // namespace banyan::topo
