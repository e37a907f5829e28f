// SPDX-License-Identifier: BSD-3-Clause
//
// Leaf groups are tolerant: two leaves serve the same group when most of the hosts on the smaller one are
// also on the other. Not equal host sets (one down link would split a group), not connected components (one
// odd host would join two).
#include <algorithm>
#include <map>
#include <numeric>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

class union_find {
  public:
    explicit union_find(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0u); }
    std::uint32_t root(std::uint32_t x) {
        while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
        return x;
    }
    void join(std::uint32_t a, std::uint32_t b) {
        a = root(a);
        b = root(b);
        parent_[std::max(a, b)] = std::min(a, b);
    }

  private:
    std::vector<std::uint32_t> parent_;
};

std::vector<std::uint32_t> leaves_of(const fabric& f, const host& h) {
    std::vector<std::uint32_t> out;
    for (const auto i : h.hcas)
        if (f.hcas[i].leaf != none) out.push_back(f.hcas[i].leaf);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

union_find join_leaves(const fabric& f) {
    std::vector<std::uint32_t> hosts_on(f.switches.size());
    std::unordered_map<std::uint64_t, std::uint32_t> shared;
    for (const auto& h : f.hosts) {
        const auto leaves = leaves_of(f, h);
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            ++hosts_on[leaves[i]];
            for (std::size_t j = i + 1; j < leaves.size(); ++j)
                ++shared[std::uint64_t{leaves[i]} << 32 | leaves[j]];
        }
    }
    union_find groups(f.switches.size());
    for (const auto& [pair, count] : shared) {
        const auto a = static_cast<std::uint32_t>(pair >> 32), b = static_cast<std::uint32_t>(pair);
        if (2 * count > std::min(hosts_on[a], hosts_on[b])) groups.join(a, b);
    }
    return groups;
}

/// The rails of a group: its leaves by the device number that most of their HCAs have.
void order_rails(state& s, leaf_group& group) {
    std::unordered_map<std::uint32_t, std::pair<double, double>>
        sum;  // leaf -> (sum, count) of positions in the host
    for (const auto h : group.hosts)
        for (std::size_t at = 0; at < s.out.hosts[h].hcas.size(); ++at) {
            auto& [total, count] = sum[s.out.hcas[s.out.hosts[h].hcas[at]].leaf];
            total += static_cast<double>(at);
            count += 1;
        }
    const auto mean = [&](std::uint32_t leaf) {
        const auto& [total, count] = sum[leaf];
        return count > 0 ? total / count : 1e9;
    };
    std::stable_sort(group.leaves.begin(), group.leaves.end(),
                     [&](auto a, auto b) { return mean(a) < mean(b); });
    for (std::size_t rail = 0; rail < group.leaves.size(); ++rail)
        for (const auto h : group.hosts)
            for (const auto i : s.out.hosts[h].hcas)
                if (s.out.hcas[i].leaf == group.leaves[rail])
                    s.out.hcas[i].rail = static_cast<std::uint16_t>(rail);
}

/// Groups that reach the same switch above their leaves have the same spine group.
void number_spine_groups(fabric& f, const std::vector<std::uint32_t>& group_of_leaf) {
    union_find joined(f.leaf_groups.size());
    std::unordered_map<std::uint32_t, std::uint32_t> first_group_of_spine;
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        for (const auto& [low, high] : {std::pair(l.a.index, l.b.index), std::pair(l.b.index, l.a.index)}) {
            if (group_of_leaf[low] == none || f.switches[high].level != 1) continue;
            const auto [at, fresh] = first_group_of_spine.try_emplace(high, group_of_leaf[low]);
            if (!fresh) joined.join(at->second, group_of_leaf[low]);
        }
    }
    std::map<std::uint32_t, std::uint32_t> number;
    for (std::uint32_t g = 0; g < f.leaf_groups.size(); ++g)
        f.leaf_groups[g].spine_group =
            number.try_emplace(joined.root(g), static_cast<std::uint32_t>(number.size())).first->second;
}

}  // namespace

void group_leaves(state& s) {
    auto& f = s.out;
    auto joined = join_leaves(f);
    std::vector<std::uint32_t> group_of_leaf(f.switches.size(), none);
    std::unordered_map<std::uint32_t, std::uint32_t> group_of_root;
    // Hosts are sorted by name, so groups come out numbered by their smallest host.
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h) {
        std::map<std::uint32_t, std::uint32_t> votes;
        for (const auto i : f.hosts[h].hcas)
            if (f.hcas[i].leaf != none) ++votes[joined.root(f.hcas[i].leaf)];
        if (votes.empty()) continue;
        const auto best = std::max_element(votes.begin(), votes.end(),
                                           [](auto& a, auto& b) { return a.second < b.second; });
        const auto [at, fresh] =
            group_of_root.try_emplace(best->first, static_cast<std::uint32_t>(f.leaf_groups.size()));
        if (fresh) {
            f.leaf_groups.emplace_back();
            f.leaf_groups.back().id = "g" + std::to_string(f.leaf_groups.size());
        }
        f.hosts[h].leaf_group = at->second;
        f.hosts[h].confidence =
            static_cast<double>(best->second) / static_cast<double>(f.hosts[h].hcas.size());
        f.leaf_groups[at->second].hosts.push_back(h);
    }
    for (std::uint32_t sw = 0; sw < f.switches.size(); ++sw) {
        const auto at = group_of_root.find(joined.root(sw));
        if (f.switches[sw].level != 0 || at == group_of_root.end()) continue;
        group_of_leaf[sw] = at->second;
        f.leaf_groups[at->second].leaves.push_back(sw);
    }
    for (auto& group : f.leaf_groups) order_rails(s, group);
    number_spine_groups(f, group_of_leaf);
}

}  // namespace banyan::topo::build
