// SPDX-License-Identifier: BSD-3-Clause
//
// Parallel links as one line with a count, and the bundles that should be there and are not.
#include <algorithm>
#include <map>

#include "topo/draw/scene.hpp"

namespace banyan::topo::draw {
namespace {

using level_pair = std::pair<std::uint8_t, std::uint8_t>;

level_pair levels(const fabric& f, const bundle& b) {
    return {f.switches[b.low].level, f.switches[b.high].level};
}

template <class Value>
Value most_frequent(const std::map<Value, std::uint32_t>& counts) {
    Value best{};
    std::uint32_t most = 0;
    for (const auto& [value, n] : counts)
        if (n >= most) {
            best = value;
            most = n;
        }
    return best;
}

std::vector<bundle> collect(const fabric& f, const scene& s) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, bundle> found;
    for (std::size_t i = 0; i < f.links.size(); ++i) {
        const auto& l = f.links[i];
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        auto low = box_of(f, l.a.index), high = box_of(f, l.b.index);
        if (low == high) continue;
        if (std::pair(f.switches[high].level, high) < std::pair(f.switches[low].level, low))
            std::swap(low, high);
        auto& b = found[{low, high}];
        if (b.count == 0 || speed(l.rate) < speed(b.rate)) b.rate = l.rate;
        b.low = low;
        b.high = high;
        ++b.count;
        b.state = std::max(b.state, s.links[i]);
    }
    std::vector<bundle> out;
    for (const auto& entry : found) out.push_back(entry.second);
    return out;
}

/// A spine that serves most leaves of a group is expected to serve all of them.
void add_missing(const fabric& f, const scene& s, std::vector<bundle>& bundles) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>>
        leaves_at;  // (group, spine)
    for (const auto& b : bundles)
        if (const auto g = s.group_of_switch[b.low]; g != none) leaves_at[{g, b.high}].push_back(b.low);
    for (const auto& [at, linked] : leaves_at) {
        const auto& leaves = f.leaf_groups[at.first].leaves;
        if (linked.size() == leaves.size() || 2 * linked.size() <= leaves.size()) continue;
        for (const auto leaf : leaves)
            if (std::find(linked.begin(), linked.end(), leaf) == linked.end())
                bundles.push_back({leaf, at.second, 0, 0, {}, health::broken});
    }
    std::sort(bundles.begin(), bundles.end(), [](const bundle& a, const bundle& b) {
        return std::pair(a.low, a.high) < std::pair(b.low, b.high);
    });
}

}  // namespace

std::vector<bundle> bundle_links(const fabric& f, const scene& s) {
    auto out = collect(f, s);
    std::map<level_pair, std::map<std::uint32_t, std::uint32_t>> counts, speeds;
    for (const auto& b : out) {
        ++counts[levels(f, b)][b.count];
        ++speeds[levels(f, b)][speed(b.rate)];
    }
    std::map<level_pair, std::pair<std::uint32_t, std::uint32_t>> usual;
    for (const auto& [level, n] : counts) usual[level] = {most_frequent(n), most_frequent(speeds[level])};
    for (auto& b : out) {
        const auto [count, gbps] = usual[levels(f, b)];
        b.usual = count;
        if (speed(b.rate) < gbps) b.state = std::max(b.state, health::degraded);
        // Few links are a defect where the model says so; elsewhere the fabric may be built like that.
        if (b.count < count)
            b.state =
                std::max(b.state, s.switches[b.low] == health::broken ? health::broken : health::degraded);
    }
    add_missing(f, s, out);
    for (auto& b : out)
        if (b.count == 0) b.usual = usual[levels(f, b)].first;
    return out;
}

}  // namespace banyan::topo::draw
