// SPDX-License-Identifier: BSD-3-Clause
//
// Leaf groups against groups of the same kind of hosts, and the mesh between two levels of switches: in a
// tree, every lower switch has the same number of links to every upper one of its block. Missing links are
// laid to the one switch that explains most of them.
#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/union_find.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

std::string pattern_of(const fabric& f, const leaf_group& g) {
    std::vector<std::string> patterns;
    for (const auto h : g.hosts) patterns.push_back(name_pattern(f.hosts[h].name));
    return usual(std::move(patterns)).value;
}

void find_missing_leaves(state& s) {
    auto& f = s.out;
    const auto expected = expected_leaves(f);
    for (std::size_t i = 0; i < f.leaf_groups.size(); ++i) {
        const auto& g = f.leaf_groups[i];
        if (g.leaves.size() >= expected[i]) continue;
        std::vector<std::string> names, where;
        for (const auto leaf : g.leaves) {
            names.push_back(f.switches[leaf].name);
            where.push_back(hex(f.switches[leaf].id));
        }
        s.report("missing-leaf", std::move(names),
                 fmt::format("{} has {} leaves, most groups of such hosts have {}", g.id, g.leaves.size(),
                             expected[i]),
                 0.9, std::move(where));
    }
}

struct edge {
    std::uint32_t low, links;
};

/// Links between one level and the next: for each upper switch its lowers, ascending. Flat, since a large
/// fabric has hundreds of thousands.
struct mesh {
    std::vector<std::uint32_t> uppers;  ///< switches, ascending
    std::vector<std::size_t> first;     ///< of the edges of each upper, and one past the last
    std::vector<edge> edges;
    std::vector<std::uint32_t> all_lowers;

    std::span<const edge> edges_of(std::size_t upper) const {
        return std::span(edges).subspan(first[upper], first[upper + 1] - first[upper]);
    }
};

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

/// By the level of the lower switches.
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

using block = std::vector<std::size_t>;  ///< uppers, as positions in mesh::uppers

/// Uppers that lead mostly to the same lowers. Compared by their distinct sets, of which a sound fabric has
/// few.
std::vector<block> blocks_of(const mesh& m) {
    using lower_set = std::vector<std::uint32_t>;
    std::map<lower_set, block> alike;
    for (std::size_t upper = 0; upper < m.uppers.size(); ++upper) {
        lower_set set;
        for (const auto& e : m.edges_of(upper)) set.push_back(e.low);
        alike[std::move(set)].push_back(upper);
    }
    std::vector<std::size_t> sizes;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> sets_of_lower;
    for (const auto& [set, uppers] : alike) {
        for (const auto low : set) sets_of_lower[low].push_back(static_cast<std::uint32_t>(sizes.size()));
        sizes.push_back(set.size());
    }
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> shared;
    for (const auto& [low, with] : sets_of_lower)
        for (std::size_t i = 0; i < with.size(); ++i)
            for (std::size_t j = i + 1; j < with.size(); ++j)
                ++shared[std::uint64_t{with[i]} << 32 | with[j]];
    union_find joined(sizes.size());
    for (const auto& [pair, count] : shared) {
        const auto a = static_cast<std::uint32_t>(pair >> 32), b = static_cast<std::uint32_t>(pair);
        if (2 * count > std::min(sizes[a], sizes[b])) joined.join(a, b);
    }
    const auto first_of = joined.smallest();
    std::map<std::uint32_t, block> blocks;
    std::uint32_t at = 0;
    for (const auto& [set, uppers] : alike) {
        auto& b = blocks[first_of[at++]];
        b.insert(b.end(), uppers.begin(), uppers.end());
    }
    std::vector<block> out;
    for (auto& [root, uppers] : blocks) out.push_back(std::move(uppers));
    return out;
}

/// The lowers that belong to each block, ascending. A lower may belong to several (a spine under several
/// planes of cores); a cable or two to one of them are a mistake, not membership.
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

struct gap {
    std::uint32_t low, high, missing;
};

void report_gaps(state& s, std::vector<gap> gaps, std::uint32_t expected) {
    const auto& f = s.out;
    while (!gaps.empty()) {
        // The switch that explains most; a lower one where both do, since one leaf's cables fail more easily.
        std::map<std::uint32_t, std::vector<gap>> by_low, by_high;
        for (const auto& g : gaps) {
            by_low[g.low].push_back(g);
            by_high[g.high].push_back(g);
        }
        const auto larger = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
        const auto low = std::max_element(by_low.begin(), by_low.end(), larger);
        const auto high = std::max_element(by_high.begin(), by_high.end(), larger);
        const bool upper = high->second.size() > low->second.size();
        const auto& culprit = upper ? *high : *low;
        std::uint32_t missing = 0;
        for (const auto& g : culprit.second) missing += g.missing;
        std::vector<std::string> where{hex(f.switches[culprit.first].id)};
        std::string to;
        for (const auto& g : culprit.second) {
            const auto other = upper ? g.low : g.high;
            where.push_back(fmt::format("{} {} of {}", hex(f.switches[other].id), g.missing, expected));
            to += fmt::format("{}{}{}", to.empty() ? "" : ", ", label(s, other),
                              g.missing > 1 ? fmt::format(" ({})", g.missing) : "");
        }
        s.report(upper ? "asymmetric-spine" : "missing-uplink", {label(s, culprit.first)},
                 fmt::format("{} of {} links missing, to {}", missing, expected * culprit.second.size(), to),
                 0.9, std::move(where));
        std::erase_if(gaps, [&](const gap& g) { return (upper ? g.high : g.low) == culprit.first; });
    }
}

/// Calls `visit(upper, lower, links)` for every pair of the block, also where there is no link.
template <class Visit>
void each_pair(const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers, Visit visit) {
    for (const auto upper : uppers) {
        const auto edges = m.edges_of(upper);
        auto e = edges.begin();
        for (const auto low : lowers) {
            while (e != edges.end() && e->low < low) ++e;
            visit(m.uppers[upper], low, e != edges.end() && e->low == low ? e->links : 0);
        }
    }
}

void check_block(state& s, const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers) {
    if (uppers.size() * lowers.size() < 4) return;  // too small to show what is usual
    std::vector<std::uint32_t> all;
    all.reserve(uppers.size() * lowers.size());
    each_pair(m, uppers, lowers,
              [&](std::uint32_t, std::uint32_t, std::uint32_t links) { all.push_back(links); });
    const auto expected = usual(std::move(all));
    if (expected.value == 0 || expected.share() < 0.6) return;  // no full mesh: nothing to compare with
    if (expected.have == expected.of) return;
    std::vector<gap> gaps;
    each_pair(m, uppers, lowers, [&](std::uint32_t high, std::uint32_t low, std::uint32_t links) {
        if (links < expected.value) gaps.push_back({low, high, expected.value - links});
    });
    report_gaps(s, std::move(gaps), expected.value);
}

void find_gaps(state& s) {
    for (const auto& m : meshes_of(s.out)) {
        const auto blocks = blocks_of(m);
        const auto lowers = lowers_of_blocks(m, blocks);
        std::vector<bool> linked(s.out.switches.size());
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            check_block(s, m, blocks[b], lowers[b]);
            for (const auto low : lowers[b]) linked[low] = true;
        }
        for (const auto low : m.all_lowers)
            if (!linked[low] && !m.uppers.empty() && s.out.switches[low].level == 0)
                s.report("missing-uplink", {label(s, low)}, "no link leads up from it, as from its like", 0.9,
                         {hex(s.out.switches[low].id)});
    }
}

void find_bad_names(state& s) {
    std::map<std::string_view, std::vector<const switch_node*>> by_name;
    for (const auto& sw : s.out.switches) {
        if (is_factory_switch(sw.name) || sw.name.empty())
            s.report("factory-name", {hex(sw.id)},
                     fmt::format("the switch is called \"{}\": it was never given a name", sw.name), 1.0);
        else
            by_name[sw.name].push_back(&sw);
    }
    for (const auto& [name, switches] : by_name) {
        if (switches.size() < 2) continue;
        std::vector<std::string> guids;
        for (const auto* sw : switches) guids.push_back(hex(sw->id));
        s.report("duplicate-name", std::move(guids), fmt::format("switches that are all called \"{}\"", name),
                 1.0);
    }
}

}  // namespace

/// Groups of such hosts have so many leaves. One that has far fewer has hosts of another kind (two HCAs
/// beside eight), unless its rails have a hole.
std::vector<std::size_t> expected_leaves(const fabric& f) {
    std::map<std::string, std::vector<std::size_t>> by_pattern;
    std::vector<std::string> patterns;
    for (const auto& g : f.leaf_groups) {
        patterns.push_back(pattern_of(f, g));
        by_pattern[patterns.back()].push_back(g.leaves.size());
    }
    std::map<std::string, usual_value<std::size_t>> usual_of;
    for (auto& [pattern, counts] : by_pattern) usual_of[pattern] = usual(std::move(counts));
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < f.leaf_groups.size(); ++i) {
        const auto& g = f.leaf_groups[i];
        const auto& most = usual_of[patterns[i]];
        const auto have = g.leaves.size();
        const bool hole = !g.rails.empty() && g.rails.back() >= have;
        const bool few_lack = most.value > have && most.value - have <= std::max<std::size_t>(1, have / 3);
        out.push_back(have > 0 && (hole || (few_lack && have > 1)) ? std::max(have, most.value) : have);
    }
    return out;
}

void find_idle_leaves(state& s) {
    const auto& f = s.out;
    for (std::uint32_t i = 0; i < f.switches.size(); ++i) {
        if (f.switches[i].level != 0 || s.off_confidence[i] == 0 || f.switches[i].box != i) continue;
        s.report("off", {label(s, i)},
                 s.off_confidence[i] < 0.7
                     ? "it has no host, and the same spines as the leaves: their like, or a core"
                     : "no host is on it; it has the same spines as the leaves around it",
                 s.off_confidence[i], {hex(f.switches[i].id)});
    }
}

void find_switch_defects(state& s) {
    find_missing_leaves(s);
    find_gaps(s);
    find_bad_names(s);
}

}  // namespace banyan::topo::build
