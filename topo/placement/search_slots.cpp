// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/search_slots.hpp"

#include <algorithm>
#include <utility>

namespace banyan::topo {

slot_search::slot_search(const bin_distances& distance, const communication_graph& graph,
                         const std::vector<bin>& bins, std::vector<std::uint32_t> bin_of_slot)
    : distance_(distance), graph_(graph), bins_(bins), at_(std::move(bin_of_slot)), slots_of_(bins.size()) {
    for (std::uint32_t slot = 0; slot < at_.size(); ++slot) slots_of_[at_[slot]].push_back(slot);
}

double slot_search::cost_of(std::uint32_t slot) const {
    double sum = 0;
    const auto edges = graph_.of(slot);
    for (const auto& e : edges) sum += e.weight * distance_(at_[slot], at_[e.to]);
    budget_ -= static_cast<std::int64_t>(edges.size());
    return sum;
}

double slot_search::cost_of(std::span<const std::uint32_t> slots) const {
    double sum = 0;
    for (const auto slot : slots) sum += cost_of(slot);
    return sum;
}

void slot_search::put(std::span<const std::uint32_t> slots, std::uint32_t to) {
    for (const auto slot : slots) at_[slot] = to;
}

/// What a kept exchange changes besides.
void slot_search::enlist(std::span<const std::uint32_t> slots, std::uint32_t from, std::uint32_t to) {
    if (slots.size() == 1) {
        std::erase(slots_of_[from], slots.front());
    } else if (!slots.empty()) {
        // They are at `to` already.
        std::erase_if(slots_of_[from], [&](auto slot) { return at_[slot] == to; });
    }
    slots_of_[to].insert(slots_of_[to].end(), slots.begin(), slots.end());
}

/// `here`, which sit in one bin, go to the bin `to`, and `there` from it into their place; back again where
/// that lowers no cost.
bool slot_search::try_exchange(std::span<const std::uint32_t> here, std::span<const std::uint32_t> there,
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

bool slot_search::improve_slot(std::uint32_t slot) {
    if (cost_of(slot) <= 0) return false;
    const auto here = std::span(&slot, 1);
    for (const auto& e : graph_.of(slot)) {
        if (budget_ <= 0) break;
        const auto to = at_[e.to];
        if (to == at_[slot]) continue;
        if (room(to) > 0 && try_exchange(here, {}, to)) return true;
        for (const auto other : slots_of_[to])
            if (budget_ > 0 && try_exchange(here, std::span(&other, 1), to)) return true;
    }
    return false;
}

bool slot_search::improve_shares(std::span<const partition* const> lines, work& limit) {
    struct share {
        std::uint32_t bin = 0;
        std::vector<std::uint32_t> slots;
    };
    std::vector<share> shares;
    std::vector<std::size_t> share_of_bin(bins_.size(),
                                          SIZE_MAX);  // the latest; of earlier lines below begin
    const auto add = [&](std::span<const std::uint32_t> line) {
        const auto begin = shares.size();
        for (const auto slot : line) {
            auto& number = share_of_bin[at_[slot]];
            if (number == SIZE_MAX || number < begin) {
                number = shares.size();
                shares.push_back({at_[slot], {}});
            }
            shares[number].slots.push_back(slot);
        }
        budget_ -= static_cast<std::int64_t>(line.size());
    };
    for (const auto* sets : lines)
        for (std::uint32_t s = 0; s < sets->size(); ++s) add((*sets)[s]);
    limit.spend(at_.size());
    std::vector<bool> marked(at_.size());
    const auto apart = [&](std::span<const std::uint32_t> here, std::span<const std::uint32_t> there) {
        limit.spend(here.size() + there.size());
        for (const auto slot : here) marked[slot] = true;
        const bool out = std::none_of(there.begin(), there.end(), [&](auto slot) { return marked[slot]; });
        for (const auto slot : here) marked[slot] = false;
        return out;
    };
    const auto end_of = [](const std::vector<std::uint32_t>& slots, std::size_t count, bool last) {
        return std::span(slots).subspan(last ? slots.size() - count : 0, count);
    };
    for (const auto& mine : shares) {
        if (budget_ <= 0 || !limit.any()) break;
        if (cost_of(std::span(mine.slots)) <= 0) continue;
        limit.spend(bins_.size());
        for (std::uint32_t to = 0; to < bins_.size() && budget_ > 0; ++to) {
            if (to == mine.bin || room(to) == 0) continue;
            const auto count = std::min(mine.slots.size(), room(to));
            for (const bool last : {false, true})
                if (try_exchange(end_of(mine.slots, count, last), {}, to)) return true;
        }
        limit.spend(shares.size());
        for (const auto& other : shares) {
            if (budget_ <= 0 || !limit.any()) break;
            if (other.bin == mine.bin) continue;
            const auto count = std::min(mine.slots.size(), other.slots.size());
            for (const bool last : {false, true})
                for (const bool their_last : {false, true}) {
                    const auto here = end_of(mine.slots, count, last),
                               there = end_of(other.slots, count, their_last);
                    if (apart(here, there) && try_exchange(here, there, other.bin)) return true;
                }
        }
    }
    return false;
}

void slot_search::run(std::span<const partition* const> lines, std::int64_t budget, work& limit) {
    budget_ = budget;
    for (bool again = true; again && budget_ > 0 && limit.any();) {
        again = false;
        limit.spend(at_.size());
        for (std::uint32_t slot = 0; slot < at_.size() && budget_ > 0; ++slot) again |= improve_slot(slot);
        while (budget_ > 0 && limit.any() && improve_shares(lines, limit)) again = true;
    }
    limit.spend(budget - budget_);
}

}  // namespace banyan::topo
