// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "topo/placement/sends.hpp"

namespace banyan::topo {

job_layout::job_layout(const request& r)
    : dims_(r.dims),
      ranks_per_node_(r.ranks_per_node),
      ranks_(ranks_by_slot(r)),
      slot_of_rank_(ranks_.size()),
      in_order_(r.nodes) {
    for (std::uint32_t i = 0; i < ranks_.size(); ++i) slot_of_rank_[ranks_[i]] = i / ranks_per_node_;
    std::iota(in_order_.begin(), in_order_.end(), 0u);
    // dp runs slowest, so that what else connects units makes them neighbours.
    const auto by_dp = sorted_by(in_order_, coordinate_of_slots(dimension::dp), dims_.size(dimension::dp));
    auto sets = in_order_;
    connect({dimension::tp, dimension::pp}, sets);
    units_ = partition(sets, r.nodes, by_dp);
    connect({dimension::cp, dimension::ep}, sets);
    bundles_ = partition(sets, r.nodes, by_dp);
}

partition job_layout::rings() const {
    const auto stride = stride_of(dims_, dimension::dp);
    const auto at = coordinate_of_slots(dimension::dp);
    auto first_of_ring = in_order_;
    for (const auto slot : in_order_) first_of_ring[slot] = first_rank(slot) - at[slot] * stride;
    return partition(first_of_ring, ranks(), in_order_);
}

std::vector<std::uint32_t> job_layout::sequence_by(dimension slow, dimension fast) const {
    const auto by_fast = sorted_by(in_order_, coordinate_of_slots(fast), dims_.size(fast));
    return sorted_by(by_fast, coordinate_of_slots(slow), dims_.size(slow));
}

/// Of the first rank of each slot.
std::vector<std::uint32_t> job_layout::coordinate_of_slots(dimension d) const {
    const auto stride = stride_of(dims_, d), size = dims_.size(d);
    auto out = in_order_;
    for (auto& slot : out) slot = first_rank(slot) / stride % size;
    return out;
}

/// Joins the sets of slots that the process groups of `along` connect; each set is named by its smallest
/// slot.
void job_layout::connect(std::initializer_list<dimension> along, std::vector<std::uint32_t>& sets) const {
    const auto root = [&](std::uint32_t s) {
        while (sets[s] != s) s = sets[s] = sets[sets[s]];
        return s;
    };
    std::pair<std::uint32_t, std::uint32_t> last;  // the ranks of a node join the same two
    const auto join = [&](std::uint32_t x, std::uint32_t y) {
        if (x == y || std::pair(x, y) == last) return;
        last = {x, y};
        const auto a = root(x), b = root(y);
        sets[std::max(a, b)] = std::min(a, b);
    };
    for (const auto d : along) {
        const auto stride = stride_of(dims_, d), size = dims_.size(d);
        // Each rank of a block and the next one along `d`; the last has none.
        for (std::uint32_t block = 0; block < ranks_.size(); block += stride * size)
            for (auto rank = block; rank < block + stride * (size - 1); ++rank)
                join(slot_of_rank_[rank], slot_of_rank_[rank + stride]);
    }
    for (auto& s : sets) s = root(s);
}

}  // namespace banyan::topo
