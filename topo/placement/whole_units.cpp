// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/whole_units.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

namespace banyan::topo {
namespace {

class filler {
  public:
    explicit filler(seats& out) : out_(out) {
        for (const auto& p : out_.free.pools) {
            left_of_spine_[p.spine_group] += p.left();
            left_of_island_[p.island] += p.left();
        }
    }

    void fill(std::span<const std::uint32_t> slots, std::uint32_t number) {
        auto& p = out_.free.pools[number];
        for (const auto slot : slots) out_.pool_of_slot[slot] = number;
        p.taken += slots.size();
        left_of_spine_[p.spine_group] -= slots.size();
        left_of_island_[p.island] -= slots.size();
    }

    /// A piece that no pool holds whole: in the spine group, or else the island, that can hold it and has the
    /// least left, the smallest pool that ends it, else the largest part, and so on.
    void straddle(std::span<const std::uint32_t> slots) {
        const pool* home = nullptr;
        while (!slots.empty()) {
            const auto wanted = slots.size();
            const auto too_small = [&](const pool& p) {
                return std::pair(left_of_island_[p.island] < wanted, left_of_spine_[p.spine_group] < wanted);
            };
            const auto key = [&](const pool& p) {
                const bool ends = p.left() >= wanted;
                const auto left = static_cast<std::int64_t>(p.left());
                const auto near =
                    home ? std::pair(p.island != home->island, p.spine_group != home->spine_group)
                         : too_small(p);
                const auto around = home ? 0 : left_of_spine_[p.spine_group];
                return std::tuple(near, around, !ends, ends ? left : -left, p.taken == 0);
            };
            pool* best = nullptr;
            auto& pools = out_.free.pools;
            for (auto& p : pools)
                if (p.left() > 0 && (!best || key(p) < key(*best))) best = &p;
            home = best;
            const auto part = slots.first(std::min(wanted, best->left()));
            fill(part, static_cast<std::uint32_t>(best - pools.data()));
            slots = slots.subspan(part.size());
        }
    }

  private:
    seats& out_;
    std::map<std::uint32_t, std::size_t> left_of_spine_, left_of_island_;
};

}  // namespace

seats keep_units_whole(const fabric& f, const candidates& from, const request& r, const job_layout& layout) {
    seats out;
    out.free = make_pools(f, from);
    auto& pools = out.free.pools;
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
        return std::pair(a.island, a.spine_group) < std::pair(b.island, b.spine_group);
    });
    out.pool_of_slot.assign(r.nodes, none);
    filler into(out);
    std::uint32_t next = 0;
    for (std::uint32_t p = 0; p < pools.size(); ++p)
        for (std::uint32_t i = 0; i < pools[p].pieces && next < pieces->size(); ++i)
            into.fill((*pieces)[next++], p);
    while (next < pieces->size()) into.straddle((*pieces)[next++]);
    return out;
}

}  // namespace banyan::topo
