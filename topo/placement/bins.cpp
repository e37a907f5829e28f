// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/bins.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace banyan::topo {

float risk_of(const fabric& f, std::span<const float> risk, std::uint32_t host) {
    const float given = host < risk.size() ? risk[host] : 0;
    const auto group = f.hosts[host].leaf_group;
    const auto rails = group == none ? 0 : f.leaf_groups[group].leaves.size();
    // A job runs at the speed of its slowest rail.
    constexpr float degraded = 0.5f;
    if (f.hosts[host].slow || f.hosts[host].rails < rails) return std::max(given, degraded);
    return group != none && f.leaf_groups[group].thin ? std::max(given, below_a_bad_link) : given;
}

free_bins make_bins(const fabric& f, const candidates& from) {
    const auto groups = f.leaf_groups.size();
    std::vector<std::uint32_t> first(groups + 2);  // by group, the last for hosts without one
    const auto group_of = [&](std::uint32_t host) {
        return std::min<std::size_t>(f.hosts[host].leaf_group, groups);
    };
    for (const auto host : from.free) ++first[group_of(host) + 1];
    for (std::size_t g = 1; g < first.size(); ++g) first[g] += first[g - 1];
    free_bins out;
    out.hosts.resize(from.free.size());
    auto next = first;
    for (const auto host : from.free) out.hosts[next[group_of(host)]++] = host;

    std::vector<bool> preferred(from.prefer.empty() ? 0 : f.hosts.size());
    for (const auto h : from.prefer)
        if (h < preferred.size()) preferred[h] = true;
    const auto is_preferred = [&](std::uint32_t host) { return !preferred.empty() && preferred[host]; };
    const auto key = [&](std::uint32_t host) {
        return std::tuple(!is_preferred(host), host < from.risk.size() ? from.risk[host] : 0.f,
                          std::string_view(f.hosts[host].nvlink_domain));
    };
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); };
    const auto add = [&](bin p, std::uint32_t begin, std::uint32_t end) {
        const auto hosts = std::span(out.hosts).subspan(begin, end - begin);
        if (hosts.empty()) return;
        if (!std::is_sorted(hosts.begin(), hosts.end(), before))
            std::stable_sort(hosts.begin(), hosts.end(), before);
        p.hosts = hosts;
        p.size = end - begin;
        p.preferred = static_cast<std::uint32_t>(std::count_if(hosts.begin(), hosts.end(), is_preferred));
        out.bins.push_back(p);
    };
    for (std::uint32_t g = 0; g < groups; ++g) {
        bin p;
        p.at = {g, f.leaf_groups[g].spine_group, f.leaf_groups[g].island};
        add(p, first[g], first[g + 1]);
    }
    for (auto i = first[groups]; i < first[groups + 1]; ++i) add({}, i, i + 1);
    return out;
}

}  // namespace banyan::topo
