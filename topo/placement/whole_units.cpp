// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/whole_units.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

namespace banyan::topo {
namespace {

class filler {
  public:
    filler(seats& out, work& limit) : out_(out), limit_(limit) {
        std::map<std::uint32_t, std::uint32_t> spines, islands;
        for (const auto& p : out_.free.pools) {
            const auto number = [](auto& known, std::uint32_t group) {
                return known.try_emplace(group, static_cast<std::uint32_t>(known.size())).first->second;
            };
            above_.push_back({number(spines, p.at.spine_group), number(islands, p.at.island)});
        }
        left_of_spine_.resize(spines.size());
        left_of_island_.resize(islands.size());
        for (std::size_t i = 0; i < above_.size(); ++i) {
            left_of_spine_[above_[i].spine] += out_.free.pools[i].left();
            left_of_island_[above_[i].island] += out_.free.pools[i].left();
        }
    }

    void fill(std::span<const std::uint32_t> slots, std::uint32_t number) {
        for (const auto slot : slots) out_.pool_of_slot[slot] = number;
        out_.free.pools[number].taken += slots.size();
        left_of_spine_[above_[number].spine] -= slots.size();
        left_of_island_[above_[number].island] -= slots.size();
    }

    /// A piece that no pool holds whole: in the spine group, or else the island, that can hold it and has the
    /// least left, the smallest pool that ends it, else the largest part, and so on.
    void straddle(std::span<const std::uint32_t> slots) {
        auto& pools = out_.free.pools;
        auto home = none;
        while (!slots.empty()) {
            const auto wanted = slots.size();
            if (limit_.any()) {
                home = best_for(wanted, home);
            } else {
                while (pools[next_].left() == 0) ++next_;
                home = next_;
            }
            const auto part = slots.first(std::min(wanted, pools[home].left()));
            fill(part, home);
            slots = slots.subspan(part.size());
        }
    }

  private:
    struct place {
        std::uint32_t spine, island;
    };

    /// The pool that is to hold some of `wanted` slots, of which others are in pool `home`, or in none.
    std::uint32_t best_for(std::size_t wanted, std::uint32_t home) {
        const auto& pools = out_.free.pools;
        limit_.spend(pools.size());
        const auto key = [&](std::uint32_t i) {
            const auto at = above_[i];
            const bool ends = pools[i].left() >= wanted;
            const auto left = static_cast<std::int64_t>(pools[i].left());
            const bool alone = home == none;
            return std::tuple(
                alone ? left_of_island_[at.island] < wanted : pools[i].at.island != pools[home].at.island,
                alone ? left_of_spine_[at.spine] < wanted
                      : pools[i].at.spine_group != pools[home].at.spine_group,
                alone ? left_of_spine_[at.spine] : 0, !ends, ends ? left : -left, pools[i].taken == 0);
        };
        auto best = none;
        std::optional<decltype(key(0))> least;
        for (std::uint32_t i = 0; i < pools.size(); ++i) {
            if (pools[i].left() == 0) continue;
            const auto its = key(i);
            if (least && its >= *least) continue;
            least = its;
            best = i;
        }
        return best;
    }

    seats& out_;
    work& limit_;
    std::vector<place> above_;  ///< by pool; dense numbers
    std::vector<std::size_t> left_of_spine_, left_of_island_;
    std::uint32_t next_ = 0;  ///< the pool that is cut next when no work is left
};

}  // namespace

seats keep_units_whole(const fabric& f, const candidates& from, const request& r, const job_layout& layout,
                       work& limit) {
    seats out;
    out.free = make_pools(f, from);
    auto& pools = out.free.pools;
    limit.spend(f.leaf_groups.size() + from.free.size());
    const auto share = [&](const partition& pieces) {
        return share_out(pools, pieces.size(), pieces.largest(), r.spares);
    };
    const auto* pieces = &layout.bundles();
    out.broken = share(*pieces);
    if (out.broken > 0 && pieces->size() != layout.units().size()) {
        pieces = &layout.units();
        out.broken = share(*pieces);
    }
    // Neighbouring pieces, that is data parallel peers, go side by side: group after group, those under one
    // spine together.
    std::stable_sort(pools.begin(), pools.end(), [](const pool& a, const pool& b) {
        return std::pair(a.at.island, a.at.spine_group) < std::pair(b.at.island, b.at.spine_group);
    });
    out.pool_of_slot.assign(r.nodes, none);
    filler into(out, limit);
    std::uint32_t next = 0;
    for (std::uint32_t p = 0; p < pools.size(); ++p)
        for (std::uint32_t i = 0; i < pools[p].pieces && next < pieces->size(); ++i)
            into.fill((*pieces)[next++], p);
    while (next < pieces->size()) into.straddle((*pieces)[next++]);
    return out;
}

}  // namespace banyan::topo
