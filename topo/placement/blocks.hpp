// SPDX-License-Identifier: BSD-3-Clause
//
// How ranks are cut into nodes' shares: each block of consecutive ones is a share, in the ranks' own order
// or, where that would cut tensor parallel groups, by locality. By arithmetic: nothing here takes memory, or
// time, for every rank, of which a user may ask for a million.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <banyan/topo/placement.hpp>

namespace banyan::topo {

/// A rank's position is its number in the order of the blocks: block b has positions [b * size, (b + 1) *
/// size).
class blocks {
  public:
    explicit blocks(const request& r);

    std::uint32_t count() const { return ranks_ / size_; }
    /// Ranks in each.
    std::uint32_t size() const { return size_; }
    /// The positions are the ranks themselves.
    bool in_rank_order() const { return in_rank_order_; }
    std::uint32_t block_of(std::uint32_t rank) const { return position_of(rank) / size_; }
    std::uint32_t position_of(std::uint32_t rank) const;
    std::uint32_t rank_at(std::uint32_t position) const;
    /// Position -> rank, of all. Cost: O(ranks).
    std::vector<std::uint32_t> all_ranks() const;
    /// The smallest rank of a block.
    std::uint32_t least_rank(std::uint32_t block) const;
    /// Members of a group along `d`, and the distance of two neighbours in positions.
    std::uint32_t members(dimension d) const { return digit_of(d).size; }
    std::uint32_t distance(dimension d) const { return digit_of(d).at; }

    /// Calls `visit(from, to, ranks)` for the blocks that hold ranks and their successors along `d`: the next
    /// member of their group. `wrap`: and for those that hold a last member and the first one.
    /// Cost: O(blocks).
    template <class Visit>
    void each_successor(dimension d, bool wrap, Visit visit) const {
        const auto own = digit_of(d);
        if (own.size < 2) return;
        const std::uint64_t stride = own.at, back = stride * (own.size - 1);
        for (std::uint32_t from = 0; from < count(); ++from) {
            const std::uint64_t begin = std::uint64_t{from} * size_, end = begin + size_;
            each_target(begin + stride, [&](std::uint64_t to, std::uint64_t low, std::uint64_t high) {
                low -= stride;
                high -= stride;
                const auto last = last_members(own, high) - last_members(own, low);
                if (high - low > last) visit(from, static_cast<std::uint32_t>(to), high - low - last);
            });
            if (!wrap || last_members(own, end) == last_members(own, begin)) continue;
            // Positions before `back` have nothing to go back to.
            const auto first = std::max(begin, back);
            if (first >= end) continue;
            each_target(
                first - back,
                [&](std::uint64_t to, std::uint64_t low, std::uint64_t high) {
                    const auto last = last_members(own, high + back) - last_members(own, low + back);
                    if (last > 0) visit(from, static_cast<std::uint32_t>(to), last);
                },
                end - first);
        }
    }

  private:
    struct digit {
        std::uint32_t size = 1;  ///< of its dimension
        std::uint32_t at = 1;    ///< distance of two neighbours in positions
        std::uint32_t rank = 1;  ///< and in ranks
    };
    const digit& digit_of(dimension d) const { return digits_[d]; }

    /// Of the positions before `end`, those of last members.
    static std::uint64_t last_members(const digit& d, std::uint64_t end) {
        const std::uint64_t period = std::uint64_t{d.at} * d.size, before = period - d.at;
        const auto rest = end % period;
        return end / period * d.at + (rest > before ? rest - before : 0);
    }
    /// Calls `visit(block, low, high)` for the parts of the `length` positions from `begin` (none: a block's)
    /// that lie in one block each.
    template <class Visit>
    void each_target(std::uint64_t begin, Visit visit, std::uint64_t length = 0) const {
        const auto end = std::min<std::uint64_t>(begin + (length ? length : size_), ranks_);
        while (begin < end) {
            const auto block = begin / size_, high = std::min(end, (block + 1) * size_);
            visit(block, begin, high);
            begin = high;
        }
    }

    std::uint32_t ranks_, size_;
    bool in_rank_order_;
    by_dimension<digit> digits_{};
    std::array<dimension, dimension_count>
        order_{};  ///< from the fastest running in positions to the slowest
};

}  // namespace banyan::topo
