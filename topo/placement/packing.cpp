// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/packing.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace banyan::topo {
namespace {

/// The bins that a job would use, and what using them costs: the lower, the better.
struct choice {
    std::vector<bin*> bins;
    std::uint32_t reach = 0;  ///< items that they hold
    std::tuple<std::uint32_t, std::int64_t, std::uint64_t, std::uint64_t> cost{UINT32_MAX, 0, 0, 0};
};

class chooser {
  public:
    chooser(std::vector<bin>& bins, std::uint32_t count, std::uint32_t size, std::uint32_t spares)
        : count_(count), size_(size), spares_(spares) {
        for (auto& p : bins)
            if (capacity(p) > 0) all_.push_back(&p);
        // The largest first: so many items need no fewer bins in any other order.
        std::stable_sort(all_.begin(), all_.end(), [&](const bin* a, const bin* b) {
            return std::pair(a->preferred, capacity(*a)) > std::pair(b->preferred, capacity(*b));
        });
    }

    choice best() const {
        choice best;
        const auto consider = [&](choice c) {
            if (best.bins.empty() || c.cost < best.cost) best = std::move(c);
        };
        if (all_.empty()) return best;
        const auto spines = by_spine();
        for (const auto& s : spines) consider(choose(s.bins));
        // The largest spine groups together, two, three, up to all of them.
        std::map<std::uint32_t, std::size_t> position;
        for (std::size_t n = 0; n < spines.size(); ++n) position[spines[n].bins.front()->at.spine_group] = n;
        std::vector<std::size_t> position_of;
        for (const auto* p : all_) position_of.push_back(position[p->at.spine_group]);
        std::vector<bin*> together;
        // All sizes where the spine groups are as many as a fabric has; in longer and longer strides beyond.
        constexpr std::size_t each = 128;
        for (std::size_t n = 1; n < spines.size();
             n = n < each || n + 1 == spines.size() ? n + 1 : std::min(n + n / 4, spines.size() - 1)) {
            together.clear();
            for (std::size_t i = 0; i < all_.size(); ++i)
                if (position_of[i] <= n) together.push_back(all_[i]);
            consider(choose(together));
        }
        return best;
    }

    std::uint32_t capacity(const bin& p) const { return p.size / size_; }

  private:
    struct spine {
        std::vector<bin*> bins;
        std::uint64_t capacity = 0;
    };

    /// The bins under each spine group, the group that holds most first.
    std::vector<spine> by_spine() const {
        std::map<std::uint32_t, spine> found;
        for (auto* p : all_) {
            auto& s = found[p->at.spine_group];
            s.bins.push_back(p);
            s.capacity += capacity(*p);
        }
        std::vector<spine> out;
        for (auto& [group, s] : found) out.push_back(std::move(s));
        std::stable_sort(out.begin(), out.end(),
                         [](const spine& a, const spine& b) { return a.capacity > b.capacity; });
        return out;
    }

    /// The fewest of `from`, which are in the order of all_, then as small ones as will do.
    choice choose(std::vector<bin*> from) const {
        std::size_t used = 0;
        std::uint32_t reach = 0;
        while (used < from.size() && reach < count_) reach += capacity(*from[used++]);
        // The last one may be larger than needed: the smallest unused bin that still suffices takes its
        // place.
        if (used == 1 || (used > 1 && reach > count_)) {
            const auto last = used - 1;
            const auto wanted = capacity(*from[last]) - std::min(reach - count_, capacity(*from[last]));
            auto pick = last;
            for (std::size_t j = used; j < from.size(); ++j)
                if (from[j]->preferred >= from[last]->preferred &&
                    fits_better(*from[j], *from[pick], wanted, used == 1))
                    pick = j;
            reach = reach - capacity(*from[last]) + capacity(*from[pick]);
            std::swap(from[last], from[pick]);
        }
        from.resize(used);
        return rate(std::move(from), reach);
    }

    /// Whether `a` suffices and leaves less over than `b`; the only bin of a job should hold its spares too.
    bool fits_better(const bin& a, const bin& b, std::uint32_t wanted, bool alone) const {
        if (capacity(a) < wanted) return false;
        const auto needed = std::size_t{wanted} * size_ + (alone ? spares_ : 0);
        const auto key = [&](const bin& p) { return std::pair(p.size < needed, p.size); };
        return key(a) < key(b);
    }

    choice rate(std::vector<bin*> bins, std::uint32_t reach) const {
        choice c;
        std::uint64_t hosts = 0;
        std::int64_t preferred = 0;
        std::vector<std::uint32_t> spines;
        for (const auto* p : bins) {
            hosts += p->size;
            preferred += p->preferred;
            spines.push_back(p->at.spine_group);
        }
        const bool no_room = bins.size() == 1 && hosts < std::uint64_t{count_} * size_ + spares_;
        c.cost = {count_ - std::min(count_, reach), -preferred, 2 * crossings(std::move(spines)) + no_room,
                  hosts};
        c.bins = std::move(bins);
        c.reach = reach;
        return c;
    }

    std::vector<bin*> all_;
    std::uint32_t count_, size_, spares_;
};

}  // namespace

std::size_t crossings(std::vector<std::uint32_t> spine_groups) {
    const auto leaf_groups = spine_groups.size();
    std::sort(spine_groups.begin(), spine_groups.end());
    const auto count = static_cast<std::size_t>(std::unique(spine_groups.begin(), spine_groups.end()) -
                                                spine_groups.begin());
    return (leaf_groups > 1 ? leaf_groups : 0) + (count > 1 ? count : 0);
}

std::uint32_t pack(std::vector<bin>& bins, std::uint32_t count, std::uint32_t size, std::uint32_t spares) {
    for (auto& p : bins) p.items = 0;
    const chooser choose(bins, count, size, spares);
    const auto chosen = choose.best().bins;
    // Evenly: every bin gives as many as `level` where it can, so few that it just suffices.
    const auto sum_at = [&](std::uint32_t level) {
        std::uint64_t sum = 0;
        for (const auto* p : chosen) sum += std::min(choose.capacity(*p), level);
        return sum;
    };
    std::uint32_t low = 0, level = count;
    while (low + 1 < level) (sum_at((low + level) / 2) >= count ? level : low) = (low + level) / 2;
    std::uint32_t left = count;
    for (const bool last : {false, true})
        for (auto* p : chosen) {
            // First all but the topmost item of each, then those in turn.
            const auto most = std::min(choose.capacity(*p), last ? level : level - 1);
            const auto more = std::min(left, most - std::min(most, p->items));
            p->items += more;
            left -= more;
        }
    return left;
}

}  // namespace banyan::topo
