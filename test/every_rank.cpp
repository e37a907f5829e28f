// SPDX-License-Identifier: BSD-3-Clause
#include "test/every_rank.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace banyan::topo::test {
namespace {

std::uint32_t rank_at(const shape& dims, const by_dimension<std::uint32_t>& at) {
    std::uint32_t rank = 0, stride = 1;
    for (const auto& e : dims.order) {
        rank += at[e.dim] * stride;
        stride *= e.size;
    }
    return rank;
}

tier where_they_meet(const fabric& f, std::uint32_t a, std::uint32_t b) {
    if (a == b) return tier::host;
    const auto x = f.hosts[a].leaf_group, y = f.hosts[b].leaf_group;
    if (x == y && f.hosts[a].nvlink != none && f.hosts[a].nvlink == f.hosts[b].nvlink) return tier::nvlink;
    if (x == y) return tier::leaf;
    const auto &g = f.leaf_groups[x], &h = f.leaf_groups[y];
    return g.spine_group == h.spine_group ? tier::spine : g.island == h.island ? tier::core : tier::wan;
}

std::uint32_t distinct(std::vector<std::uint32_t>& v) {
    std::sort(v.begin(), v.end());
    return static_cast<std::uint32_t>(std::unique(v.begin(), v.end()) - v.begin());
}

}  // namespace

every_rank::every_rank(const request& r)
    : asked_(r), slot_of_(r.dims.ranks()), place_(r.dims.ranks()), unit_of_(r.nodes) {
    const auto slots = ranks_of_slots(r);
    for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
        for (std::uint32_t i = 0; i < slots[slot].size(); ++i) {
            slot_of_[slots[slot][i]] = slot;
            place_[slots[slot][i]] = i;
        }
    for (std::uint32_t rank = 0; rank < slot_of_.size(); ++rank) {
        add_sends_of(rank);
        add_to_groups(rank);
    }
    std::sort(members_.begin(), members_.end());
    members_.erase(std::unique(members_.begin(), members_.end()), members_.end());
    join_units();
}

void every_rank::add_sends_of(std::uint32_t rank) {
    const auto own = asked_.dims.coordinates(rank);
    const bool exchanged = asked_.model && asked_.model->cp == cp_scheme::all_to_all;
    for (const auto& e : asked_.dims.order) {
        const auto send = [&](std::uint32_t number) {
            auto at = own;
            at[e.dim] = number;
            sends_.push_back({rank, rank_at(asked_.dims, at), e.dim});
        };
        const auto me = own[e.dim];
        if (e.size == 1) continue;
        if (e.dim == dimension::pp) {
            if (me > 0) send(me - 1);
            if (me + 1 < e.size) send(me + 1);
        } else if (e.dim == dimension::ep || (e.dim == dimension::cp && exchanged)) {
            for (std::uint32_t other = 0; other < e.size; ++other)
                if (other != me) send(other);
        } else {
            send((me + 1) % e.size);
        }
    }
}

void every_rank::add_to_groups(std::uint32_t rank) {
    const auto own = asked_.dims.coordinates(rank);
    for (const auto& e : asked_.dims.order) {
        auto at = own;
        at[e.dim] = 0;
        if (e.size > 1) members_.push_back({e.dim, rank_at(asked_.dims, at), slot_of_[rank]});
    }
}

void every_rank::join_units() {
    std::iota(unit_of_.begin(), unit_of_.end(), 0u);
    for (bool again = true; again;) {
        again = false;
        for (const auto& s : sends_) {
            if (s.along != dimension::tp && s.along != dimension::pp) continue;
            auto &a = unit_of_[slot_of_[s.from]], &b = unit_of_[slot_of_[s.to]];
            again |= a != b;
            a = b = std::min(a, b);
        }
    }
}

std::map<std::pair<std::uint32_t, std::uint32_t>, by_dimension<std::uint64_t>> every_rank::between_slots()
    const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, by_dimension<std::uint64_t>> out;
    for (const auto& s : sends_)
        if (const auto a = slot_of_[s.from], b = slot_of_[s.to]; a != b) ++out[std::minmax(a, b)][s.along];
    return out;
}

std::uint64_t every_rank::leaving(std::uint32_t slot, dimension d) const {
    std::uint64_t out = 0;
    for (const auto& s : sends_) out += s.along == d && slot_of_[s.from] == slot && slot_of_[s.to] != slot;
    return out;
}

measured every_rank::on(const fabric& f, const placement& p) const {
    measured out;
    const auto group_of = [&](std::uint32_t slot) { return f.hosts[p.nodes[slot]].leaf_group; };
    const auto weights = weights_of(asked_);
    const auto bytes = traffic_of(asked_.dims, asked_.model.value_or(model_size{}));
    std::map<std::pair<std::uint32_t, std::size_t>, double> upwards;  // by leaf group and rail
    for (const auto& s : sends_) {
        const auto from = slot_of_[s.from];
        const auto met = where_they_meet(f, p.nodes[from], p.nodes[slot_of_[s.to]]);
        out.weighted += weights[s.along] * f.tier_cost[met];
        out.bytes[met] += bytes[s.along];
        if (met < tier::spine) continue;
        const auto rails = std::max<std::size_t>(1, f.leaf_groups[group_of(from)].leaves.size());
        auto& sum = upwards[{group_of(from), place_[s.from] % rails}];
        sum += bytes[s.along];
        out.busiest_rail = std::max(out.busiest_rail, sum);
    }
    std::map<std::uint32_t, std::set<std::uint32_t>> groups_of_unit;
    for (std::uint32_t slot = 0; slot < unit_of_.size(); ++slot)
        groups_of_unit[unit_of_[slot]].insert(group_of(slot));
    out.units = static_cast<std::uint32_t>(groups_of_unit.size());
    for (const auto& [unit, groups] : groups_of_unit) out.straddling += groups.size() > 1;
    std::vector<std::uint32_t> touched;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const auto& m = members_[i];
        touched.push_back(group_of(m.slot));
        const bool last = i + 1 == members_.size() || members_[i + 1].along != m.along ||
                          members_[i + 1].first_rank != m.first_rank;
        if (!last) continue;
        out.spread = std::max(out.spread, distinct(touched));
        touched.clear();
    }
    return out;
}

}  // namespace banyan::topo::test
