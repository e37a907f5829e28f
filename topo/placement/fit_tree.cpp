// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/fit_tree.hpp"

#include <algorithm>
#include <map>

namespace banyan::topo {

void fit_like_tree(const std::vector<bin>& bins, std::size_t wanted, bin_order& o, work& limit) {
    struct spine {
        std::size_t hosts = 0;   ///< of its leaves, at first
        std::size_t chosen = 0;  ///< leaves; the more, the nearer are its others
    };
    struct leaf {
        std::size_t left;
        spine* above;
    };
    std::map<std::uint32_t, spine> spines;
    std::vector<leaf> leaves;
    for (auto& p : o.parts) {
        leaves.push_back({p.size, &spines[bins[p.bin].at.spine_group]});
        leaves.back().above->hosts += p.size;
        p.quota = 0;
    }
    /// Above 0 when `a` hosts suit better than `b`.
    const auto compare = [&](std::size_t a, std::size_t b) {
        const bool fits_a = a >= wanted, fits_b = b >= wanted;
        if (fits_a != fits_b) return fits_a ? 1 : -1;
        return a == b ? 0 : (a < b) == fits_a ? 1 : -1;
    };
    const auto suits = [&](const leaf& a, const leaf& b) {
        const bool by_spine = a.left < wanted && b.left < wanted && a.above != b.above;
        return by_spine ? compare(a.above->hosts, b.above->hosts) : compare(a.left, b.left);
    };
    const auto give = [&](leaf& from) {
        auto& part = o.parts[static_cast<std::size_t>(&from - leaves.data())];
        part.quota = static_cast<std::uint32_t>(std::min(wanted, from.left));
        wanted -= part.quota;
        from.left = 0;
        ++from.above->chosen;
    };
    while (wanted > 0 && limit.any()) {
        leaf* best = nullptr;
        limit.spend(leaves.size());
        for (auto& l : leaves) {
            if (l.left == 0) continue;
            const auto nearer = best ? static_cast<std::ptrdiff_t>(l.above->chosen - best->above->chosen) : 1;
            if (nearer < 0) continue;
            const int suited = best ? suits(l, *best) : 1;
            if (suited > 0 || (nearer > 0 && suited == 0)) best = &l;
        }
        if (!best) return;
        give(*best);
    }
    for (auto& l : leaves)
        if (l.left > 0 && wanted > 0) give(l);
}

}  // namespace banyan::topo
