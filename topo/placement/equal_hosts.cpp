// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/equal_hosts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "topo/placement/bins.hpp"

namespace banyan::topo {
namespace {

/// The free hosts of one kind, by their risk: none, a small one, any. Those of less are part of the next.
constexpr std::size_t risks = 3;
struct pool {
    std::array<std::vector<std::uint32_t>, risks> hosts;
    std::size_t preferred = 0;
};

/// The best first.
std::vector<pool> pools_of(const fabric& f, const candidates& from) {
    std::map<host_kind, pool> found;
    std::map<host_kind, pool>::iterator at = found.end();
    for (const auto h : from.free) {
        // Neighbours are mostly alike.
        if (const auto kind = kind_of(f, from.kind, h); at == found.end() || at->first != kind)
            at = found.try_emplace(kind).first;
        auto& p = at->second;
        const auto risk = h < from.risk.size() ? from.risk[h] : 0.f;
        if (risk == 0) p.hosts[0].push_back(h);
        if (risk <= below_a_bad_link) p.hosts[1].push_back(h);
        p.hosts[2].push_back(h);
    }
    if (found.size() > 1)
        for (const auto h : from.prefer) {
            if (h >= f.hosts.size()) continue;
            if (at = found.find(kind_of(f, from.kind, h)); at != found.end()) ++at->second.preferred;
        }
    std::vector<pool> out;
    for (auto& [kind, p] : found) out.push_back(std::move(p));
    std::stable_sort(out.begin(), out.end(),
                     [](const pool& a, const pool& b) { return a.preferred > b.preferred; });
    return out;
}

/// How many of the hosts one island has at most; all where there is one island.
std::size_t most_on_an_island(const fabric& f, std::span<const std::uint32_t> hosts) {
    const auto& groups = f.leaf_groups;
    if (std::ranges::all_of(groups, [&](const auto& g) { return g.island == groups.front().island; }))
        return hosts.size();
    std::map<std::uint32_t, std::size_t> count;
    std::size_t most = 0;
    for (const auto h : hosts)
        if (const auto at = location_of(f, h); at.known()) most = std::max(most, ++count[at.island]);
    return most;
}

}  // namespace

std::partial_ordering host_kind::operator<=>(const host_kind& o) const {
    return std::tuple(o.nvlink, o.gbps, o.rails, given) <=> std::tuple(nvlink, gbps, rails, o.given);
}

host_kind kind_of(const fabric& f, std::span<const std::uint32_t> given, std::uint32_t host) {
    const auto& h = f.hosts[host];
    return {h.gbps, h.rails, h.nvlink != none, host < given.size() ? given[host] : 0};
}

std::vector<std::uint32_t> equal_hosts(const fabric& f, const candidates& from, std::size_t needed) {
    // A job that one island holds stays there, whatever is better elsewhere.
    const bool on_one = most_on_an_island(f, from.free) >= needed;
    const auto suffice = [&](const std::vector<std::uint32_t>& hosts) {
        return hosts.size() >= needed && (!on_one || most_on_an_island(f, hosts) >= needed);
    };
    auto pools = pools_of(f, from);
    if (pools.size() == 1 && pools[0].hosts[0].size() == from.free.size())
        return std::move(pools[0].hosts[0]);
    for (const bool at_risk : {false, true})
        for (auto& p : pools)
            for (std::size_t r = at_risk ? risks - 1 : 0; r < (at_risk ? risks : risks - 1); ++r)
                if (suffice(p.hosts[r])) return std::move(p.hosts[r]);
    std::vector<std::uint32_t> out;
    for (std::size_t r = 0; r < risks && !suffice(out); ++r) {
        out.clear();
        for (const auto& p : pools) {
            if (suffice(out)) break;
            out.insert(out.end(), p.hosts[r].begin(), p.hosts[r].end());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace banyan::topo
