// SPDX-License-Identifier: BSD-3-Clause
//
// Pairs of blocks in whose groups everybody sends to everybody (ep), and how many pairs of ranks they share.
// By arithmetic on positions, like blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "topo/placement/blocks.hpp"

namespace banyan::topo {

class all_to_all {
  public:
    /// Of the groups along `d`. Keeps a reference.
    all_to_all(const blocks& cut, dimension d)
        : cut_(cut),
          size_(cut.size()),
          stride_(cut.distance(d)),
          members_(cut.members(d)),
          period_(stride_ * members_) {}

    /// About how many pairs of blocks each() visits where it leaves none out. Cost: O(blocks).
    std::uint64_t pairs() const;

    /// Calls `visit(block, other, ranks)`, once for each pair of different blocks that hold members of one
    /// group: `ranks` pairs of members are on them, none of which is counted twice. `sampled`: each block
    /// with some others only, which stand for those beside them: the ranks of all visits have the same sum.
    /// Cost: O(pairs), sampled O(blocks log blocks).
    template <class Visit>
    void each(bool sampled, Visit visit) const {
        for (std::uint32_t block = 0; block < cut_.count(); ++block)
            size_ <= stride_ ? each_below(block, sampled, visit) : each_above(block, sampled, visit);
    }

  private:
    struct range {
        std::uint64_t begin = 0, end = 0;  ///< positions
        std::uint64_t length() const { return end - begin; }
    };

    /// The part of a block in the last period that it reaches: the only one that it shares with blocks behind
    /// it.
    range last_part(std::uint32_t block) const;
    /// The end of the period that a part is in.
    std::uint64_t end_of_period(const range& part) const { return (part.begin / period_ + 1) * period_; }
    /// Pairs of members of one group, one in either range; both are in one period, and apart.
    std::uint64_t shared(const range& a, const range& b) const;

    /// Calls `visit(at, step, stands_for)` for `at` = 1 to `count`; sampled: one for that at 1, one for those
    /// at 2 and 3, one for 4 to 7, and so on, which begin at `step`.
    template <class Visit>
    static void each_step(std::uint64_t count, bool sampled, Visit visit) {
        for (std::uint64_t step = 1, number = 1; step <= count; step += number) {
            number = sampled ? std::min(step, count + 1 - step) : 1;
            visit(step + number / 2, step, number);
        }
    }

    /// Of blocks no longer than the distance of two members: each rank of one has its other members behind
    /// it, one at every stride, in one block or two.
    template <class Visit>
    void each_below(std::uint32_t block, bool sampled, Visit& visit) const {
        const std::uint64_t begin = std::uint64_t{block} * size_, end = begin + size_;
        for (auto low = begin; low < end;) {
            // Ranks with the same number of members behind them.
            const auto high = std::min(end, (low / stride_ + 1) * stride_);
            const auto behind = members_ - 1 - low / stride_ % members_;
            each_step(behind, sampled, [&](std::uint64_t at, std::uint64_t, std::uint64_t stands_for) {
                const auto shift = at * stride_;
                for (auto to = low + shift; to < high + shift;) {
                    const auto other = to / size_, next = std::min(high + shift, (other + 1) * size_);
                    visit(block, static_cast<std::uint32_t>(other), (next - to) * stands_for);
                    to = next;
                }
            });
            low = high;
        }
    }

    /// Of longer ones: every block behind it in the same period has members of all its groups.
    template <class Visit>
    void each_above(std::uint32_t block, bool sampled, Visit& visit) const {
        const auto part = last_part(block);
        const auto end = end_of_period(part);
        const auto behind = (end - 1) / size_ - block;
        each_step(behind, sampled, [&](std::uint64_t at, std::uint64_t step, std::uint64_t stands_for) {
            const auto first = (block + step) * size_;
            const auto ranks = shared(part, {first, std::min(end, first + stands_for * size_)});
            visit(block, static_cast<std::uint32_t>(block + at), ranks);
        });
    }

    const blocks& cut_;
    std::uint64_t size_, stride_, members_, period_;
};

}  // namespace banyan::topo
