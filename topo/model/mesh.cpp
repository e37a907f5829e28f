// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/mesh.hpp"

#include <algorithm>
#include <map>

#include <boost/unordered/unordered_flat_map.hpp>

#include "topo/model/union_find.hpp"

namespace banyan::topo::build {
namespace {

/// Of distinct sets of lowers that are compared: a fabric of some hundred broken spines with a hundred leaves
/// each stays below it.
constexpr std::size_t most_pairs = 8'000'000;
constexpr std::size_t most_uppers = 4000;  ///< of one lower: no switch has so many ports

/// From pairs upper << 32 | lower, one for each link.
mesh mesh_of(std::vector<std::uint64_t> pairs) {
    std::sort(pairs.begin(), pairs.end());
    mesh m;
    for (std::size_t i = 0; i < pairs.size();) {
        std::size_t j = i;
        while (j < pairs.size() && pairs[j] == pairs[i]) ++j;
        const auto high = static_cast<std::uint32_t>(pairs[i] >> 32),
                   low = static_cast<std::uint32_t>(pairs[i]);
        if (m.uppers.empty() || m.uppers.back() != high) {
            m.uppers.push_back(high);
            m.first.push_back(m.edges.size());
        }
        m.edges.push_back({low, static_cast<std::uint32_t>(j - i)});
        i = j;
    }
    m.first.push_back(m.edges.size());
    return m;
}

}  // namespace

std::vector<mesh> meshes_of(const fabric& f) {
    std::vector<std::vector<std::uint64_t>> pairs;
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        auto low = l.a.index, high = l.b.index;
        if (f.switches[low].level > f.switches[high].level) std::swap(low, high);
        const std::size_t level = f.switches[low].level;
        if (f.switches[high].level == UINT8_MAX || f.switches[high].level != level + 1) continue;
        if (pairs.size() <= level) pairs.resize(level + 1);
        pairs[level].push_back(std::uint64_t{high} << 32 | low);
    }
    std::vector<mesh> out;
    for (auto& p : pairs) out.push_back(mesh_of(std::move(p)));
    for (std::uint32_t i = 0; i < f.switches.size(); ++i)
        if (f.switches[i].level < out.size()) out[f.switches[i].level].all_lowers.push_back(i);
    return out;
}

namespace {

/// Distinct sets of lowers, of which a sound fabric has few, and the uppers that have each.
struct alike_uppers {
    std::vector<std::uint32_t> lowers;
    block uppers;
};

std::vector<alike_uppers> alike_uppers_of(const mesh& m) {
    std::map<std::vector<std::uint32_t>, block> alike;
    for (std::size_t upper = 0; upper < m.uppers.size(); ++upper) {
        std::vector<std::uint32_t> set;
        for (const auto& e : m.edges_of(upper)) set.push_back(e.low);
        alike[std::move(set)].push_back(upper);
    }
    std::vector<alike_uppers> out;
    for (auto& [set, uppers] : alike) out.push_back({set, std::move(uppers)});
    return out;
}

/// For each lower the sets that it is in. All lowers where that gives few enough pairs of sets, otherwise
/// every so manyth of them.
std::vector<std::vector<std::uint32_t>> sets_of_lowers(const std::vector<alike_uppers>& alike) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> of_lower;
    for (std::uint32_t i = 0; i < alike.size(); ++i)
        for (const auto low : alike[i].lowers) of_lower[low].push_back(i);
    std::size_t pairs = 0, at = 0;
    std::erase_if(of_lower, [](const auto& each) { return each.second.size() > most_uppers; });
    for (const auto& [low, sets] : of_lower) pairs += sets.size() * sets.size() / 2;
    const auto step = pairs / most_pairs + 1;
    std::vector<std::vector<std::uint32_t>> out;
    for (auto& [low, sets] : of_lower)
        if (at++ % step == 0) out.push_back(std::move(sets));
    return out;
}

}  // namespace

std::vector<block> blocks_of(const mesh& m) {
    const auto alike = alike_uppers_of(m);
    const auto sets_of = sets_of_lowers(alike);
    std::vector<std::size_t> sizes(alike.size());  // of the lowers that are looked at
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> shared;
    for (const auto& with : sets_of)
        for (std::size_t i = 0; i < with.size(); ++i) {
            ++sizes[with[i]];
            for (std::size_t j = i + 1; j < with.size(); ++j)
                ++shared[std::uint64_t{with[i]} << 32 | with[j]];
        }
    union_find joined(sizes.size());
    for (const auto& [pair, count] : shared) {
        const auto a = static_cast<std::uint32_t>(pair >> 32), b = static_cast<std::uint32_t>(pair);
        if (2 * count > std::min(sizes[a], sizes[b])) joined.join(a, b);
    }
    const auto first_of = joined.smallest();
    std::map<std::uint32_t, block> blocks;
    for (std::uint32_t i = 0; i < alike.size(); ++i) {
        auto& b = blocks[first_of[i]];
        b.insert(b.end(), alike[i].uppers.begin(), alike[i].uppers.end());
    }
    std::vector<block> out;
    for (auto& [root, uppers] : blocks) {
        std::sort(uppers.begin(), uppers.end());
        out.push_back(std::move(uppers));
    }
    return out;
}

std::vector<std::vector<std::uint32_t>> lowers_of_blocks(const mesh& m, const std::vector<block>& blocks) {
    struct share {
        std::uint32_t low, block, links;
    };
    std::vector<share> shares;
    for (std::uint32_t b = 0; b < blocks.size(); ++b)
        for (const auto upper : blocks[b])
            for (const auto& e : m.edges_of(upper)) shares.push_back({e.low, b, e.links});
    const auto key = [](const share& s) { return std::pair(s.low, s.block); };
    std::sort(shares.begin(), shares.end(), [&](const share& x, const share& y) { return key(x) < key(y); });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < shares.size(); ++i)
        if (kept > 0 && key(shares[kept - 1]) == key(shares[i]))
            shares[kept - 1].links += shares[i].links;
        else
            shares[kept++] = shares[i];
    shares.resize(kept);
    std::vector<std::vector<std::uint32_t>> out(blocks.size());
    for (std::size_t i = 0; i < shares.size();) {
        std::size_t j = i;
        std::uint32_t most = 0;
        for (; j < shares.size() && shares[j].low == shares[i].low; ++j)
            most = std::max(most, shares[j].links);
        for (; i < j; ++i)
            if (2 * shares[i].links > most) out[shares[i].block].push_back(shares[i].low);
    }
    return out;
}

}  // namespace banyan::topo::build
