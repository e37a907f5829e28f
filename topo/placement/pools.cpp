// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/pools.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace banyan::topo {
namespace {

/// The pools that a job would use, and what using them costs: the lower, the better.
struct choice {
    std::vector<pool*> pools;
    std::uint32_t reach = 0;  ///< pieces that they hold
    std::tuple<std::uint32_t, std::int64_t, std::uint64_t, std::uint64_t> cost{UINT32_MAX, 0, 0, 0};
};

class chooser {
  public:
    chooser(std::vector<pool>& pools, std::uint32_t count, std::uint32_t piece, std::uint32_t spares)
        : count_(count), piece_(piece), spares_(spares) {
        for (auto& p : pools)
            if (capacity(p) > 0) all_.push_back(&p);
        // The largest first: so many pieces need no fewer pools in any other order.
        std::stable_sort(all_.begin(), all_.end(), [&](const pool* a, const pool* b) {
            return std::pair(a->preferred, capacity(*a)) > std::pair(b->preferred, capacity(*b));
        });
    }

    choice best() const {
        choice best;
        const auto consider = [&](choice c) {
            if (best.pools.empty() || c.cost < best.cost) best = std::move(c);
        };
        if (all_.empty()) return best;
        const auto spines = by_spine();
        for (const auto& s : spines) consider(choose(s.pools));
        // The largest spine groups together, two, three, up to all of them.
        std::map<std::uint32_t, std::size_t> position;
        for (std::size_t n = 0; n < spines.size(); ++n) position[spines[n].pools.front()->at.spine_group] = n;
        std::vector<std::size_t> position_of;
        for (const auto* p : all_) position_of.push_back(position[p->at.spine_group]);
        std::vector<pool*> together;
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

    std::uint32_t capacity(const pool& p) const { return p.size / piece_; }

  private:
    struct spine {
        std::vector<pool*> pools;
        std::uint64_t capacity = 0;
    };

    /// The pools under each spine group, the group that holds most first.
    std::vector<spine> by_spine() const {
        std::map<std::uint32_t, spine> found;
        for (auto* p : all_) {
            auto& s = found[p->at.spine_group];
            s.pools.push_back(p);
            s.capacity += capacity(*p);
        }
        std::vector<spine> out;
        for (auto& [group, s] : found) out.push_back(std::move(s));
        std::stable_sort(out.begin(), out.end(),
                         [](const spine& a, const spine& b) { return a.capacity > b.capacity; });
        return out;
    }

    /// The fewest of `from`, which are in the order of all_, then as small ones as will do.
    choice choose(std::vector<pool*> from) const {
        std::size_t used = 0;
        std::uint32_t reach = 0;
        while (used < from.size() && reach < count_) reach += capacity(*from[used++]);
        // The last one may be larger than needed: the smallest unused pool that still suffices takes its
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

    /// Whether `a` suffices and leaves less over than `b`; the only pool of a job should hold its spares too.
    bool fits_better(const pool& a, const pool& b, std::uint32_t wanted, bool alone) const {
        if (capacity(a) < wanted) return false;
        const auto needed = std::size_t{wanted} * piece_ + (alone ? spares_ : 0);
        const auto key = [&](const pool& p) { return std::pair(p.size < needed, p.size); };
        return key(a) < key(b);
    }

    choice rate(std::vector<pool*> pools, std::uint32_t reach) const {
        choice c;
        std::uint64_t hosts = 0;
        std::int64_t preferred = 0;
        std::vector<std::uint32_t> spines;
        for (const auto* p : pools) {
            hosts += p->size;
            preferred += p->preferred;
            spines.push_back(p->at.spine_group);
        }
        std::sort(spines.begin(), spines.end());
        const auto spine_count = std::unique(spines.begin(), spines.end()) - spines.begin();
        // A ring of data parallel peers goes over a spine once for each leaf group and over the core once for
        // each spine group, where there is more than one.
        const auto crossings = (pools.size() > 1 ? pools.size() : 0) +
                               (spine_count > 1 ? static_cast<std::size_t>(spine_count) : 0);
        const bool no_room = pools.size() == 1 && hosts < std::uint64_t{count_} * piece_ + spares_;
        c.cost = {count_ - std::min(count_, reach), -preferred, 2 * crossings + no_room, hosts};
        c.pools = std::move(pools);
        c.reach = reach;
        return c;
    }

    std::vector<pool*> all_;
    std::uint32_t count_, piece_, spares_;
};

}  // namespace

float risk_of(const fabric& f, std::span<const float> risk, std::uint32_t host) {
    const float given = host < risk.size() ? risk[host] : 0;
    const auto group = f.hosts[host].leaf_group;
    const auto rails = group == none ? 0 : f.leaf_groups[group].leaves.size();
    // A job runs at the speed of its slowest rail.
    constexpr float degraded = 0.5f;
    return f.hosts[host].slow || f.hosts[host].rails < rails ? std::max(given, degraded) : given;
}

free_pools make_pools(const fabric& f, const candidates& from) {
    const auto groups = f.leaf_groups.size();
    std::vector<std::uint32_t> first(groups + 2);  // by group, the last for hosts without one
    const auto group_of = [&](std::uint32_t host) {
        return std::min<std::size_t>(f.hosts[host].leaf_group, groups);
    };
    for (const auto host : from.free) ++first[group_of(host) + 1];
    for (std::size_t g = 1; g < first.size(); ++g) first[g] += first[g - 1];
    free_pools out;
    out.hosts.resize(from.free.size());
    auto next = first;
    for (const auto host : from.free) out.hosts[next[group_of(host)]++] = host;

    std::vector<bool> preferred(from.prefer.empty() ? 0 : f.hosts.size());
    for (const auto h : from.prefer)
        if (h < preferred.size()) preferred[h] = true;
    const auto is_preferred = [&](std::uint32_t host) { return !preferred.empty() && preferred[host]; };
    const auto key = [&](std::uint32_t host) {
        return std::tuple(!is_preferred(host), host < from.risk.size() ? from.risk[host] : 0.f,
                          std::string_view(f.hosts[host].nvlink_domain));
    };
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); };
    const auto add = [&](pool p, std::uint32_t begin, std::uint32_t end) {
        const auto hosts = std::span(out.hosts).subspan(begin, end - begin);
        if (hosts.empty()) return;
        if (!std::is_sorted(hosts.begin(), hosts.end(), before))
            std::stable_sort(hosts.begin(), hosts.end(), before);
        p.hosts = hosts;
        p.size = end - begin;
        p.preferred = static_cast<std::uint32_t>(std::count_if(hosts.begin(), hosts.end(), is_preferred));
        out.pools.push_back(p);
    };
    for (std::uint32_t g = 0; g < groups; ++g) {
        pool p;
        p.at = {g, f.leaf_groups[g].spine_group, f.leaf_groups[g].island};
        add(p, first[g], first[g + 1]);
    }
    for (auto i = first[groups]; i < first[groups + 1]; ++i) add({}, i, i + 1);
    return out;
}

std::uint32_t share_out(std::vector<pool>& pools, std::uint32_t count, std::uint32_t piece,
                        std::uint32_t spares) {
    for (auto& p : pools) p.pieces = 0;
    const chooser choose(pools, count, piece, spares);
    const auto chosen = choose.best().pools;
    // Evenly: every pool gives as many as `level` where it can, so few that it just suffices.
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
            // First all but the topmost piece of each, then those in turn.
            const auto most = std::min(choose.capacity(*p), last ? level : level - 1);
            const auto more = std::min(left, most - std::min(most, p->pieces));
            p->pieces += more;
            left -= more;
        }
    return left;
}

}  // namespace banyan::topo
