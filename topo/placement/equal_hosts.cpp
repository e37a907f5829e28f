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
    for (const auto h : from.free) {
        auto& p = found[kind_of(f, from.kind, h)];
        const auto risk = h < from.risk.size() ? from.risk[h] : 0.f;
        if (risk == 0) p.hosts[0].push_back(h);
        if (risk <= below_a_bad_link) p.hosts[1].push_back(h);
        p.hosts[2].push_back(h);
    }
    if (found.size() > 1)
        for (const auto h : from.prefer)
            if (const auto at = found.find(kind_of(f, from.kind, h)); at != found.end())
                ++at->second.preferred;
    std::vector<pool> out;
    for (auto& [kind, p] : found) out.push_back(std::move(p));
    std::stable_sort(out.begin(), out.end(),
                     [](const pool& a, const pool& b) { return a.preferred > b.preferred; });
    return out;
}

}  // namespace

std::partial_ordering host_kind::operator<=>(const host_kind& o) const {
    return std::tuple(o.gbps, o.rails, given) <=> std::tuple(gbps, rails, o.given);
}

host_kind kind_of(const fabric& f, std::span<const std::uint32_t> given, std::uint32_t host) {
    const auto& h = f.hosts[host];
    return {h.gbps, h.rails, host < given.size() ? given[host] : 0};
}

std::vector<std::uint32_t> equal_hosts(const fabric& f, const candidates& from, std::size_t needed) {
    auto pools = pools_of(f, from);
    for (const bool at_risk : {false, true})
        for (auto& p : pools)
            for (std::size_t r = at_risk ? risks - 1 : 0; r < (at_risk ? risks : risks - 1); ++r)
                if (p.hosts[r].size() >= needed) return std::move(p.hosts[r]);
    std::vector<std::uint32_t> out;
    for (std::size_t r = 0; r < risks && out.size() < needed; ++r) {
        out.clear();
        for (const auto& p : pools) {
            if (out.size() >= needed) break;
            out.insert(out.end(), p.hosts[r].begin(), p.hosts[r].end());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace banyan::topo
