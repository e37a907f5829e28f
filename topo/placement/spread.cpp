// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>

#include <banyan/topo/placement.hpp>

#include "topo/placement/equal_hosts.hpp"

namespace banyan::topo {

namespace {

std::vector<std::string> unlike_most(const fabric& f, const placement& p,
                                     std::span<const std::uint32_t> kind) {
    std::map<host_kind, std::vector<std::string>> names;
    for (const auto* hosts : {&p.nodes, &p.spares})
        for (const auto h : *hosts)
            if (h < f.hosts.size()) names[kind_of(f, kind, h)].push_back(f.hosts[h].name);
    // Of as many of either the better ones stand for the job.
    const auto most = std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) {
        return a.second.size() < b.second.size();
    });
    std::vector<std::string> out;
    for (auto i = names.begin(); i != names.end(); ++i)
        if (i != most) out.insert(out.end(), i->second.begin(), i->second.end());
    return out;
}

}  // namespace

spread spread_of(const fabric& f, const request& r, const placement& p, std::span<const std::uint32_t> kind) {
    spread out;
    std::vector<std::uint32_t> count(f.leaf_groups.size() + 1);
    const auto group_of = [&](std::uint32_t slot) {
        const auto host = p.nodes[slot];
        const auto group = host < f.hosts.size() ? f.hosts[host].leaf_group : none;
        return group == none ? f.leaf_groups.size() : std::size_t{group};
    };
    const auto units = units_of_slots(r);
    std::vector<std::size_t> first(r.nodes, SIZE_MAX);
    std::vector<bool> straddles(r.nodes);
    for (std::uint32_t slot = 0; slot < p.nodes.size(); ++slot) {
        const auto group = group_of(slot);
        ++count[group];
        auto& known = first[units[slot]];
        if (known == SIZE_MAX) known = group;
        if (known != group) straddles[units[slot]] = true;
        out.units = std::max(out.units, units[slot] + 1);
    }
    out.straddling_units = static_cast<std::uint32_t>(std::count(straddles.begin(), straddles.end(), true));
    for (std::size_t g = 0; g < count.size(); ++g)
        if (count[g]) out.groups.emplace_back(g < f.leaf_groups.size() ? f.leaf_groups[g].id : "?", count[g]);
    std::stable_sort(out.groups.begin(), out.groups.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    out.unlike = unlike_most(f, p, kind);
    out.fabric_unix_s = f.created_unix_s;
    return out;
}

}  // namespace banyan::topo
