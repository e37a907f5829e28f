// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/like_switches.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "topo/model/usual.hpp"

namespace banyan::topo::build {

like_switches::like_switches(const state& s) : kind_(s.out.switches.size(), nobody), alone_(kind_.size()) {
    const auto& f = s.out;
    std::map<std::string, std::uint32_t> known;
    const auto pattern = [&](std::string_view host) {
        return known.try_emplace(name_pattern(host), static_cast<std::uint32_t>(known.size())).first->second;
    };
    std::vector<std::uint32_t> pattern_of_host;
    for (const auto& h : f.hosts) pattern_of_host.push_back(pattern(h.name));
    // These may well compute, if one only knew whose they are, or gave them a LID.
    std::vector<std::uint32_t> pattern_of_left_out(f.hcas.size(), aside);
    for (const auto& e : f.excluded) {
        if (e.kind != "unattributed" && e.kind != "no-lid") continue;
        const auto at = std::ranges::lower_bound(f.hcas, e.id, {}, &hca::id) - f.hcas.begin();
        const auto& name = s.hca_names[static_cast<std::size_t>(at)];
        pattern_of_left_out[static_cast<std::size_t>(at)] =
            pattern(name.kind == hca_name::trust::named ? name.host : std::string_view());
    }
    std::vector<std::vector<std::uint32_t>> patterns(f.switches.size());
    for (const auto& l : f.links) {
        const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
        if (hca.kind != node_kind::hca || sw.kind != node_kind::switch_node) continue;
        if (s.hca_names[hca.index].kind == hca_name::trust::aggregation) continue;
        const auto host = f.hcas[hca.index].host;
        const auto which = host != none ? pattern_of_host[host] : pattern_of_left_out[hca.index];
        if (which != aside)
            patterns[sw.index].push_back(which);
        else
            kind_[sw.index] = aside;
    }
    for (std::uint32_t i = 0; i < kind_.size(); ++i)
        if (!patterns[i].empty()) kind_[i] = usual(std::move(patterns[i])).value;
    std::vector<std::size_t> leaves(known.size());
    for (const auto kind : kind_)
        if (kind < aside) ++leaves[kind];
    for (std::uint32_t i = 0; i < kind_.size(); ++i) alone_[i] = kind_[i] < aside && leaves[kind_[i]] == 1;
}

void like_switches::climb(const mesh& m) {
    for (std::size_t upper = 0; upper < m.uppers.size(); ++upper) {
        auto& kind = kind_[m.uppers[upper]];
        for (const auto& e : m.edges_of(upper))
            // Above the leaves the names of hosts divide nothing.
            if (const auto low = kind_[e.low]; low < aside)
                kind = 0;
            else if (low == aside && kind == nobody)
                kind = aside;
    }
}

std::vector<std::vector<std::uint32_t>> like_switches::divide(
    const std::vector<std::uint32_t>& lowers) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_kind;
    for (const auto low : lowers)
        if (kind_[low] != nobody) by_kind[kind_[low]].push_back(low);
    std::vector<std::vector<std::uint32_t>> out;
    std::vector<std::uint32_t> alone;
    for (auto& [kind, list] : by_kind)
        if (kind < aside && list.size() == 1)
            alone.push_back(list.front());
        else
            out.push_back(std::move(list));
    if (alone.empty()) return out;
    const auto most = std::max_element(out.begin(), out.end(), [&](const auto& a, const auto& b) {
        return std::pair(computes(a.front()), a.size()) < std::pair(computes(b.front()), b.size());
    });
    if (most == out.end() || !computes(most->front())) return out.push_back(std::move(alone)), out;
    most->insert(most->end(), alone.begin(), alone.end());
    std::sort(most->begin(), most->end());
    return out;
}

}  // namespace banyan::topo::build
