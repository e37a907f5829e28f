// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/bin_rows.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "topo/placement/packing.hpp"

namespace banyan::topo {

std::size_t bin_rows::hosts() const {
    std::size_t out = 0;
    for (const auto& p : bins_)
        if (usable(p)) out += p.size;
    return out;
}

bin_order bin_rows::by_name() const {
    bin_order o;
    for (std::uint32_t i = 0; i < bins_.size(); ++i)
        if (usable(bins_[i])) o.parts.push_back({i, bins_[i].size, bins_[i].size});
    std::stable_sort(o.parts.begin(), o.parts.end(), [&](const auto& a, const auto& b) {
        return bins_[a.bin].at.leaf_group < bins_[b.bin].at.leaf_group;
    });
    return o;
}

bin_order bin_rows::of_bins(std::uint32_t item) const {
    std::vector<bin> own;
    for (std::uint32_t i = 0; i < bins_.size(); ++i)
        if (usable(bins_[i])) {
            own.push_back(bins_[i]);
            own.back().number = i;
        }
    pack(own, asked_.slots / item, item, asked_.spares);
    std::stable_sort(own.begin(), own.end(), [&](const bin& a, const bin& b) {
        const auto key = [](const bin& p) {
            return std::tuple(p.items == 0, p.at.island, p.at.spine_group,
                              -static_cast<std::int64_t>(p.size));
        };
        return key(a) < key(b);
    });
    bin_order o;
    for (const auto& p : own) {
        o.parts.push_back({p.number, p.items == 0 ? p.size : p.items * item, p.size});
    }
    return o;
}

std::optional<bin_order> bin_rows::of_groups(std::uint32_t location::*group_of, std::uint32_t item) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> members;  // by group: its bins
    std::map<std::uint32_t, std::size_t> hosts_of_spine;
    for (std::uint32_t i = 0; i < bins_.size(); ++i)
        if (usable(bins_[i])) {
            members[bins_[i].at.*group_of].push_back(i);
            hosts_of_spine[bins_[i].at.spine_group] += bins_[i].size;
        }
    if (members.size() < 2) return std::nullopt;
    std::vector<bin> groups;
    for (auto& [number, own] : members) {
        std::stable_sort(own.begin(), own.end(), [&](auto a, auto b) {
            const auto key = [&](auto i) {
                const auto& p = bins_[i];
                return std::tuple(hosts_of_spine[p.at.spine_group], p.at.spine_group, p.size);
            };
            return key(a) > key(b);
        });
        auto& all = groups.emplace_back();
        all.number = number;
        all.at.spine_group = all.at.island = bins_[own.front()].at.island;  // what joins the groups
        for (const auto i : own) all.size += bins_[i].size;
    }
    pack(groups, asked_.slots / item, item, asked_.spares);
    std::stable_sort(groups.begin(), groups.end(), [](const bin& a, const bin& b) {
        return std::pair(a.items == 0, a.at.island) < std::pair(b.items == 0, b.at.island);
    });
    bin_order o;
    for (const auto& g : groups) {
        auto left = g.items == 0 ? asked_.slots : g.items * item;
        for (const auto i : members[g.number]) {
            o.parts.push_back({i, std::min(bins_[i].size, left), bins_[i].size});
            left -= o.parts.back().quota;
        }
    }
    return o;
}

}  // namespace banyan::topo
