// SPDX-License-Identifier: BSD-3-Clause
//
// The ways to place a job that need nothing but this program.
#include <algorithm>
#include <tuple>

#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {
namespace {

/// A leaf of topology.conf (one for each leaf group) and how many of its hosts are free.
struct leaf {
    std::uint32_t spine_group = 0;
    hosts free;
    std::size_t left = 0;
    std::size_t distance = 0;  ///< sum of the hops to the leaves chosen so far
};

/// Above 0 when `a` suits the `wanted` hosts better: what holds them all, the tighter the better; else what
/// lies under the spines that would hold them; else what holds most.
int compare(const leaf& a, const leaf& b, const std::vector<std::size_t>& in_spine_group,
            std::size_t wanted) {
    const auto by = [&](std::size_t x, std::size_t y) {
        const bool fits_x = x >= wanted, fits_y = y >= wanted;
        if (fits_x != fits_y) return fits_x ? 1 : -1;
        if (x == y) return 0;
        return (x < y) == fits_x ? 1 : -1;
    };
    if (a.left >= wanted || b.left >= wanted) return by(a.left, b.left);
    if (a.spine_group != b.spine_group)
        return by(in_spine_group[a.spine_group], in_spine_group[b.spine_group]);
    return by(a.left, b.left);
}

}  // namespace

hosts random_nodes(const hosts& free, std::uint32_t count, std::uint64_t seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed) + 77);
    auto out = free;
    for (std::uint32_t i = 0; i < count; ++i)
        std::swap(out[i], out[i + draw(random, static_cast<std::uint32_t>(out.size()) - i)]);
    out.resize(count);
    return out;
}

hosts tree_emulated(const site& s, const hosts& free, std::uint32_t count) {
    std::vector<leaf> leaves(s.net.leaf_groups.size());
    std::vector<std::size_t> in_spine_group;
    for (std::size_t g = 0; g < leaves.size(); ++g) leaves[g].spine_group = s.net.leaf_groups[g].spine_group;
    for (const auto h : free) leaves[s.net.hosts[h].leaf_group].free.push_back(h);
    for (auto& l : leaves) {
        l.left = l.free.size();
        in_spine_group.resize(std::max<std::size_t>(in_spine_group.size(), l.spine_group + 1));
        in_spine_group[l.spine_group] += l.left;
    }
    hosts out;
    while (out.size() < count) {
        const auto wanted = count - out.size();
        leaf* best = nullptr;
        for (auto& l : leaves) {
            if (l.left == 0) continue;
            if (!best) {
                best = &l;
                continue;
            }
            const int better = compare(l, *best, in_spine_group, wanted);
            if ((l.distance < best->distance && better >= 0) || (l.distance == best->distance && better > 0))
                best = &l;
        }
        if (!best) return {};
        const auto taken = std::min(wanted, best->left);
        out.insert(out.end(), best->free.begin(), best->free.begin() + static_cast<std::ptrdiff_t>(taken));
        best->left = 0;
        for (auto& l : leaves) l.distance += l.spine_group == best->spine_group ? 2 : 4;
    }
    std::sort(out.begin(), out.end());
    return out;
}

hosts block_emulated(const site& s, const hosts& free, std::uint32_t count, std::uint32_t segment,
                     bool largest_first) {
    std::vector<hosts> blocks(s.net.leaf_groups.size());
    for (const auto h : free) blocks[s.net.hosts[h].leaf_group].push_back(h);
    for (auto& b : blocks) b.resize(b.size() - b.size() % segment);
    if (largest_first)
        std::stable_sort(blocks.begin(), blocks.end(),
                         [](const hosts& a, const hosts& b) { return a.size() > b.size(); });
    hosts out;
    for (const auto& b : blocks)
        for (const auto h : b)
            if (out.size() < count) out.push_back(h);
    if (out.size() < count) return {};
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace banyan::topo::quality
