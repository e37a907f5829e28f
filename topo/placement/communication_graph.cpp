// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/communication_graph.hpp"

#include <limits>

#include "topo/placement/all_to_all.hpp"
#include "topo/placement/communication.hpp"

namespace banyan::topo {

communication_graph::communication_graph(const request& r, const job_slots& job, const traffic& weights) {
    std::vector<pair> pairs;
    const auto& cut = job.cut();
    for (const auto d : all_dimensions) {
        if (r.dims.size(d) < 2) continue;
        const auto how = pattern_of(r, d);
        const auto join = [&](std::uint32_t a, std::uint32_t b, std::uint64_t ranks) {
            if (a == b || ranks == 0) return;
            pairs.push_back({job.slot_of_block(a), job.slot_of_block(b),
                             weights[d] * static_cast<double>(sends_of_pair(how) * ranks)});
        };
        if (how == pattern::all_to_all) {
            const all_to_all members(cut, d);
            members.each(members.pairs() > max_pairs, join);
        } else {
            cut.each_successor(d, how == pattern::ring, join);
        }
    }
    connect(r.nodes, pairs);
}

void communication_graph::connect(std::uint32_t vertices, const std::vector<pair>& pairs) {
    first_.resize(vertices + 1);
    for (const auto& p : pairs) {
        ++first_[p.a + 1];
        ++first_[p.b + 1];
    }
    for (std::size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
    edges_.resize(2 * pairs.size());
    auto next = first_;
    for (const auto& p : pairs) {
        edges_[next[p.a]++] = {p.b, p.weight};
        edges_[next[p.b]++] = {p.a, p.weight};
    }
    merge_parallel_edges();
}

void communication_graph::merge_parallel_edges() {
    // Of the edge to a slot; those of earlier slots are below `begin`.
    std::vector<std::uint32_t> place(vertices(), none);
    std::uint32_t kept = 0, from = 0;
    for (std::uint32_t slot = 0; slot < vertices(); ++slot) {
        const auto begin = kept, end = first_[slot + 1];
        for (; from < end; ++from) {
            const auto e = edges_[from];
            auto& at = place[e.to];
            if (at != none && at >= begin) {
                edges_[at].weight += e.weight;
            } else {
                at = kept;
                edges_[kept++] = e;
            }
        }
        first_[slot + 1] = kept;
    }
    edges_.resize(kept);
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
