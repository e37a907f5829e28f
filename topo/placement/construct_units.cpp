// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/construct_units.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "topo/placement/packing.hpp"

namespace banyan::topo {
namespace {

class filler {
  public:
    filler(assignment& out, work& limit) : out_(out), limit_(limit) {
        std::map<std::uint32_t, std::uint32_t> spines, islands;
        for (const auto& p : out_.free.bins) {
            const auto number = [](auto& known, std::uint32_t group) {
                return known.try_emplace(group, static_cast<std::uint32_t>(known.size())).first->second;
            };
            above_.push_back({number(spines, p.at.spine_group), number(islands, p.at.island)});
        }
        left_of_spine_.resize(spines.size());
        left_of_island_.resize(islands.size());
        for (std::size_t i = 0; i < above_.size(); ++i) {
            left_of_spine_[above_[i].spine] += out_.free.bins[i].left();
            left_of_island_[above_[i].island] += out_.free.bins[i].left();
        }
    }

    void fill(std::span<const std::uint32_t> slots, std::uint32_t number) {
        for (const auto slot : slots) out_.bin_of_slot[slot] = number;
        out_.free.bins[number].taken += slots.size();
        left_of_spine_[above_[number].spine] -= slots.size();
        left_of_island_[above_[number].island] -= slots.size();
    }

    /// An item that no bin holds whole: in the spine group, or else the island, that can hold it and has the
    /// least left, the smallest bin that ends it, else the largest part, and so on.
    void straddle(std::span<const std::uint32_t> slots) {
        auto& bins = out_.free.bins;
        auto home = none;
        while (!slots.empty()) {
            const auto wanted = slots.size();
            if (limit_.any()) {
                home = best_for(wanted, home);
            } else {
                while (bins[next_].left() == 0) ++next_;
                home = next_;
            }
            const auto part = slots.first(std::min(wanted, bins[home].left()));
            fill(part, home);
            slots = slots.subspan(part.size());
        }
    }

  private:
    struct place {
        std::uint32_t spine, island;
    };

    /// The bin that is to hold some of `wanted` slots, of which others are in bin `home`, or in none.
    std::uint32_t best_for(std::size_t wanted, std::uint32_t home) {
        const auto& bins = out_.free.bins;
        limit_.spend(bins.size());
        const auto key = [&](std::uint32_t i) {
            const auto at = above_[i];
            const bool ends = bins[i].left() >= wanted;
            const auto left = static_cast<std::int64_t>(bins[i].left());
            const bool alone = home == none;
            return std::tuple(
                alone ? left_of_island_[at.island] < wanted : bins[i].at.island != bins[home].at.island,
                alone ? left_of_spine_[at.spine] < wanted
                      : bins[i].at.spine_group != bins[home].at.spine_group,
                alone ? left_of_spine_[at.spine] : 0, !ends, ends ? left : -left, bins[i].taken == 0);
        };
        auto best = none;
        std::optional<decltype(key(0))> least;
        for (std::uint32_t i = 0; i < bins.size(); ++i) {
            if (bins[i].left() == 0) continue;
            const auto its = key(i);
            if (least && its >= *least) continue;
            least = its;
            best = i;
        }
        return best;
    }

    assignment& out_;
    work& limit_;
    std::vector<place> above_;  ///< by bin; dense numbers
    std::vector<std::size_t> left_of_spine_, left_of_island_;
    std::uint32_t next_ = 0;  ///< the bin that is cut next when no work is left
};

}  // namespace

assignment construct_whole_units(const fabric& f, const candidates& from, const request& r,
                                 const job_slots& job, work& limit) {
    assignment out;
    out.free = make_bins(f, from);
    auto& bins = out.free.bins;
    limit.spend(f.leaf_groups.size() + from.free.size());
    const auto packed = [&](const partition& items) {
        return pack(bins, items.size(), items.largest(), r.spares);
    };
    const auto* items = &job.bundles();
    out.broken = packed(*items);
    if (out.broken > 0 && items->size() != job.units().size()) {
        items = &job.units();
        out.broken = packed(*items);
    }
    // Neighbouring items, that is data parallel peers, go side by side: group after group, those under one
    // spine together.
    std::stable_sort(bins.begin(), bins.end(), [](const bin& a, const bin& b) {
        return std::pair(a.at.island, a.at.spine_group) < std::pair(b.at.island, b.at.spine_group);
    });
    out.bin_of_slot.assign(r.nodes, none);
    filler into(out, limit);
    std::uint32_t next = 0;
    for (std::uint32_t p = 0; p < bins.size(); ++p)
        for (std::uint32_t i = 0; i < bins[p].items && next < items->size(); ++i)
            into.fill((*items)[next++], p);
    while (next < items->size()) into.straddle((*items)[next++]);
    return out;
}

}  // namespace banyan::topo
