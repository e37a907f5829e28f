// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/seating.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <banyan/topo/traffic.hpp>

namespace banyan::topo {

distances::distances(const fabric& f, const std::vector<pool>& pools)
    : spine_(f.tier_cost[static_cast<std::size_t>(tier::spine)]),
      core_(f.tier_cost[static_cast<std::size_t>(tier::core)]),
      wan_(f.tier_cost[static_cast<std::size_t>(tier::wan)]) {
    auto lonely = none;
    for (const auto& p : pools)
        at_.push_back(p.group == none ? place{--lonely, lonely} : place{p.spine_group, p.island});
}

slot_graph::slot_graph(const request& r, const job_layout& layout) : first_(r.nodes + 1) {
    struct pair {
        std::uint32_t from, to;
        double weight;
    };
    std::vector<pair> pairs;
    const auto weights = weights_of(r);
    std::uint32_t stride = 1;
    for (const auto& e : r.dims.order) {
        const auto each = weights[static_cast<std::size_t>(e.dim)];
        for (std::uint32_t slot = 0; slot < r.nodes && e.size > 1; ++slot) {
            const auto rank = layout.first_rank(slot);
            const auto at = rank / stride % e.size;
            const auto first = rank - at * stride;
            const auto to = [&](std::uint32_t member, double weight) {
                const auto other = layout.slot_of(first + member * stride);
                if (other == slot) return;
                pairs.push_back({slot, other, weight});
                pairs.push_back({other, slot, weight});
            };
            if (e.dim == dimension::ep) {
                for (std::uint32_t m = at + 1; m < e.size; ++m) to(m, 2 * each);
            } else if (e.dim == dimension::pp) {
                if (at + 1 < e.size) to(at + 1, 2 * each);
            } else {
                to((at + 1) % e.size, each);
            }
        }
        stride *= e.size;
    }
    for (const auto& p : pairs) ++first_[p.from + 1];
    for (std::size_t s = 1; s < first_.size(); ++s) first_[s] += first_[s - 1];
    edges_.resize(pairs.size());
    auto next = first_;
    for (const auto& p : pairs) edges_[next[p.from]++] = {p.to, p.weight};
}

double slot_graph::cost(const distances& far, const std::vector<std::uint32_t>& pool_of_slot, double limit,
                        std::int64_t& budget) const {
    double sum = 0;
    std::uint32_t slot = 0;
    for (; slot < pool_of_slot.size() && sum < limit; ++slot)
        for (const auto& e : of(slot))
            if (e.to > slot) sum += e.weight * far(pool_of_slot[slot], pool_of_slot[e.to]);
    budget -= first_[slot];
    return sum;
}

double slot_graph::difference(const distances& far, const std::vector<std::uint32_t>& before,
                              const std::vector<std::uint32_t>& after, std::span<const std::uint32_t> moved,
                              std::int64_t& budget) const {
    double sum = 0;
    for (const auto slot : moved) {
        for (const auto& e : of(slot)) {
            const bool both = before[e.to] != after[e.to];
            if (both && e.to < slot) continue;
            sum += e.weight * (far(after[slot], after[e.to]) - far(before[slot], before[e.to]));
        }
        budget -= static_cast<std::int64_t>(of(slot).size());
    }
    return sum;
}

seating::seating(const distances& far, const slot_graph& graph, const std::vector<pool>& pools,
                 std::vector<std::uint32_t> pool_of_slot)
    : far_(&far), graph_(&graph), pools_(&pools), at_(std::move(pool_of_slot)), slots_of_(pools.size()) {
    for (std::uint32_t slot = 0; slot < at_.size(); ++slot) slots_of_[at_[slot]].push_back(slot);
}

double seating::cost_of(std::uint32_t slot) const {
    double sum = 0;
    const auto edges = graph_->of(slot);
    for (const auto& e : edges) sum += e.weight * (*far_)(at_[slot], at_[e.to]);
    budget_ -= static_cast<std::int64_t>(edges.size());
    return sum;
}

double seating::cost() const {
    auto unlimited = std::numeric_limits<std::int64_t>::max();
    return graph_->cost(*far_, at_, std::numeric_limits<double>::max(), unlimited);
}

double seating::cost_of(std::span<const std::uint32_t> slots) const {
    double sum = 0;
    for (const auto slot : slots) sum += cost_of(slot);
    return sum;
}

void seating::put(std::span<const std::uint32_t> slots, std::uint32_t to) {
    for (const auto slot : slots) at_[slot] = to;
}

/// What a kept exchange changes besides.
void seating::enlist(std::span<const std::uint32_t> slots, std::uint32_t from, std::uint32_t to) {
    for (const auto slot : slots) {
        std::erase(slots_of_[from], slot);
        slots_of_[to].push_back(slot);
    }
}

/// `here`, which sit in one pool, go to the pool `to`, and `there` from it into their place; back again where
/// that lowers no cost.
bool seating::try_exchange(std::span<const std::uint32_t> here, std::span<const std::uint32_t> there,
                           std::uint32_t to) {
    constexpr double least_share = 1e-9;  // less is rounding
    const auto from = at_[here.front()];
    // An edge between the two sides is counted at both ends, and costs the same before and after.
    const auto before = cost_of(here) + cost_of(there);
    put(here, to);
    put(there, from);
    const auto after = cost_of(here) + cost_of(there);
    if (after < before * (1 - least_share)) {
        enlist(here, from, to);
        enlist(there, to, from);
        return true;
    }
    put(here, from);
    put(there, to);
    return false;
}

bool seating::improve_slot(std::uint32_t slot) {
    if (cost_of(slot) <= 0) return false;
    const auto here = std::span(&slot, 1);
    for (const auto& e : graph_->of(slot)) {
        const auto to = at_[e.to];
        if (to == at_[slot]) continue;
        if (room(to) > 0 && try_exchange(here, {}, to)) return true;
        for (const auto other : slots_of_[to])
            if (budget_ > 0 && try_exchange(here, std::span(&other, 1), to)) return true;
    }
    return false;
}

bool seating::improve_shares(std::span<const partition* const> lines) {
    struct share {
        std::uint32_t pool = 0;
        std::vector<std::uint32_t> slots;
    };
    std::vector<share> shares;
    const auto add = [&](std::span<const std::uint32_t> line) {
        const auto begin = static_cast<std::ptrdiff_t>(shares.size());
        for (const auto slot : line) {
            auto found = std::find_if(shares.begin() + begin, shares.end(),
                                      [&](const share& s) { return s.pool == at_[slot]; });
            if (found == shares.end()) found = shares.insert(shares.end(), {at_[slot], {}});
            found->slots.push_back(slot);
        }
        budget_ -= static_cast<std::int64_t>(line.size());
    };
    for (const auto* sets : lines)
        for (std::uint32_t s = 0; s < sets->size(); ++s) add((*sets)[s]);
    const auto end_of = [](const std::vector<std::uint32_t>& slots, std::size_t count, bool last) {
        return std::span(slots).subspan(last ? slots.size() - count : 0, count);
    };
    for (const auto& mine : shares) {
        if (cost_of(std::span(mine.slots)) <= 0) continue;
        for (std::uint32_t to = 0; to < pools_->size() && budget_ > 0; ++to) {
            if (to == mine.pool || room(to) == 0) continue;
            const auto count = std::min(mine.slots.size(), room(to));
            for (const bool last : {false, true})
                if (try_exchange(end_of(mine.slots, count, last), {}, to)) return true;
        }
        for (const auto& other : shares) {
            if (other.pool == mine.pool || budget_ <= 0) continue;
            const auto count = std::min(mine.slots.size(), other.slots.size());
            for (const bool last : {false, true})
                for (const bool their_last : {false, true}) {
                    const auto here = end_of(mine.slots, count, last),
                               there = end_of(other.slots, count, their_last);
                    const bool apart = std::none_of(here.begin(), here.end(), [&](auto slot) {
                        return std::find(there.begin(), there.end(), slot) != there.end();
                    });
                    if (apart && try_exchange(here, there, other.pool)) return true;
                }
        }
    }
    return false;
}

void seating::improve(std::span<const partition* const> lines, std::int64_t budget) {
    budget_ = budget;
    for (bool again = true; again && budget_ > 0;) {
        again = false;
        for (std::uint32_t slot = 0; slot < at_.size() && budget_ > 0; ++slot) again |= improve_slot(slot);
        while (budget_ > 0 && improve_shares(lines)) again = true;
    }
}

}  // namespace banyan::topo
