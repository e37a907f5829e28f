// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/job_slots.hpp"

#include <algorithm>
#include <numeric>

#include "topo/placement/communication.hpp"

namespace banyan::topo {

job_slots::job_slots(const request& r)
    : dims_(r.dims), cut_(r), slot_of_block_(r.nodes), first_rank_(r.nodes), in_order_(r.nodes) {
    std::iota(in_order_.begin(), in_order_.end(), 0u);
    block_of_slot_ = in_order_;
    for (const auto block : in_order_) first_rank_[block] = cut_.least_rank(block);
    if (!cut_.in_rank_order()) {
        std::sort(block_of_slot_.begin(), block_of_slot_.end(),
                  [&](auto a, auto b) { return first_rank_[a] < first_rank_[b]; });
        std::sort(first_rank_.begin(), first_rank_.end());
    }
    for (const auto slot : in_order_) slot_of_block_[block_of_slot_[slot]] = slot;
    // dp runs slowest, so that what else connects units makes them neighbours.
    const auto by_dp = sorted_by(in_order_, coordinate_of_slots(dimension::dp), dims_.size(dimension::dp));
    auto sets = in_order_;
    connect({dimension::tp, dimension::pp}, sets);
    units_ = partition(sets, r.nodes, by_dp);
    connect({dimension::cp, dimension::ep}, sets);
    bundles_ = partition(sets, r.nodes, by_dp);
}

std::vector<std::uint32_t> job_slots::ranks_by_slot() const {
    auto all = cut_.all_ranks();
    if (cut_.in_rank_order()) return all;
    std::vector<std::uint32_t> out;
    out.reserve(all.size());
    for (const auto block : block_of_slot_) {
        const auto first = all.begin() + std::ptrdiff_t{block} * cut_.size(), end = first + cut_.size();
        if (!std::is_sorted(first, end)) std::sort(first, end);
        out.insert(out.end(), first, end);
    }
    return out;
}

partition job_slots::rings() const {
    const auto stride = stride_of(dims_, dimension::dp);
    const auto at = coordinate_of_slots(dimension::dp);
    auto first_of_ring = in_order_;
    for (const auto slot : in_order_) first_of_ring[slot] = first_rank(slot) - at[slot] * stride;
    // Ranks may be many more than slots: their place among those that occur stands for them.
    auto known = first_of_ring;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (auto& rank : first_of_ring)
        rank = static_cast<std::uint32_t>(std::lower_bound(known.begin(), known.end(), rank) - known.begin());
    return partition(first_of_ring, static_cast<std::uint32_t>(known.size()), in_order_);
}

std::vector<std::uint32_t> job_slots::sequence_by(dimension slow, dimension fast) const {
    const auto by_fast = sorted_by(in_order_, coordinate_of_slots(fast), dims_.size(fast));
    return sorted_by(by_fast, coordinate_of_slots(slow), dims_.size(slow));
}

std::vector<std::uint32_t> job_slots::sequence_in_tiles(std::uint32_t stages) const {
    auto tile = coordinate_of_slots(dimension::pp), along = coordinate_of_slots(dimension::dp);
    auto known = tile;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    if (stages >= known.size()) return {};
    for (std::size_t slot = 0; slot < tile.size(); ++slot) {
        const auto at = std::lower_bound(known.begin(), known.end(), tile[slot]) - known.begin();
        tile[slot] = static_cast<std::uint32_t>(at) / stages;
        if (tile[slot] % 2) along[slot] = dims_.size(dimension::dp) - 1 - along[slot];
    }
    const auto by_pp = sorted_by(in_order_, coordinate_of_slots(dimension::pp), dims_.size(dimension::pp));
    return sorted_by(sorted_by(by_pp, along, dims_.size(dimension::dp)), tile,
                     static_cast<std::uint32_t>(known.size()));
}

/// Of the first rank of each slot.
std::vector<std::uint32_t> job_slots::coordinate_of_slots(dimension d) const {
    const auto stride = stride_of(dims_, d), size = dims_.size(d);
    auto out = in_order_;
    for (auto& slot : out) slot = first_rank(slot) / stride % size;
    return out;
}

/// Joins the sets of slots that the process groups of `along` connect; each set is named by its smallest
/// slot.
void job_slots::connect(std::initializer_list<dimension> along, std::vector<std::uint32_t>& sets) const {
    const auto root = [&](std::uint32_t s) {
        while (sets[s] != s) s = sets[s] = sets[sets[s]];
        return s;
    };
    for (const auto d : along)
        cut_.each_successor(d, false, [&](std::uint32_t x, std::uint32_t y, std::uint64_t) {
            if (x == y) return;
            const auto a = root(slot_of_block_[x]), b = root(slot_of_block_[y]);
            sets[std::max(a, b)] = std::min(a, b);
        });
    for (auto& s : sets) s = root(s);
}

}  // namespace banyan::topo
